// Balance: which ranks of a node write for others, so that none is left writing while the rest
// have finished.
//
// Source: Jin et al. 2024, 3.4: the first write of the busiest rank becomes the last one of the
// least busy, until the busiest has less than twice the load of the least busy. Loads are those of
// the previous iteration. A rank's write of its own that is moved costs it nothing further: the
// encoded bytes pass through shared memory (exec).

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace {

/// One write of one rank of the node that moves to another.
struct MovedWrite {
  std::size_t from_rank = 0;  ///< Within the node.
  std::size_t to_rank = 0;
  std::size_t position = 0;  ///< In from_rank's order of writes.
};

enum class BalanceRule : std::uint8_t {
  off,
  paper,  ///< 3.4, as it stands: ratio 2, first to last.
  best  ///< Ours: as long as a move shortens the longest rank's writing, the write that helps most.
};
/// "off", "paper" or "best". @error invalid_argument  no rule of this name; lists those there are.
Result<BalanceRule> parse_balance_rule(std::string_view name);

/// Decide the moves. @param write_s  per rank of the node the expected lengths of its writes, in
/// their order; what is no number above 0 counts as 0. Deterministic: all ranks of a node that call
/// it with the same loads agree.
/// A moved write does not move again, so both rules end; both also end at a move after which the
/// receiver would write for at least as long as the giver did before: so neither makes the longest
/// rank longer. `best` moves only what shortens the longest by half a percent at least.
/// @returns the moves in the order decided on, which is that in which a receiver takes them.
/// Not collective. Thread-safe. Cost: O(n log n) for n writes.
std::vector<MovedWrite> balance_writes(std::span<const std::vector<double>> write_s,
                                       BalanceRule rule);

}  // namespace tailrace
