// Balance: selects writes that ranks of a node do for others, so that no rank is still writing
// after the rest have finished.
//
// Source: Jin et al. 2024, 3.4. The first write of the busiest rank becomes the last one of the
// least busy rank. This repeats until the busiest rank has less than twice the load of the least
// busy. Loads are those of the previous iteration. A moved write costs its former rank no further
// time: the encoded bytes pass through shared memory (exec).

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace {

/// Write that moves from one rank of the node to another.
struct MovedWrite {
  std::size_t from_rank = 0;  ///< Index within the node.
  std::size_t to_rank = 0;
  std::size_t position = 0;  ///< Index in from_rank's order of writes.
};

enum class BalanceRule : std::uint8_t {
  off,
  paper,  ///< The rule of 3.4 unchanged: ratio 2, first to last.
  best    ///< Ours: moves the most helpful write while a move shortens the longest rank's writing.
};
/// Parse "off", "paper" or "best". @error invalid_argument  unknown name; the text lists the known
/// ones.
Result<BalanceRule> parse_balance_rule(std::string_view name);

/// Decide the moves. Deterministic: all ranks of a node that call it with the same loads agree.
/// A moved write does not move again, so both rules terminate. Both also stop before a move after
/// which the receiver would write at least as long as the giver did before: so neither makes the
/// longest rank longer. `best` moves a write only if that shortens the longest rank by at least
/// half a percent.
/// @param write_s  expected lengths of each rank's writes, in their order; a value that is not a
/// number above 0 counts as 0.
/// @returns the moves in the order of decision, which is also the order in which a receiver writes
/// them.
/// Not collective. Thread-safe. Cost: O(n log n) for n writes.
std::vector<MovedWrite> balance_writes(std::span<const std::vector<double>> write_s,
                                       BalanceRule rule);

}  // namespace tailrace
