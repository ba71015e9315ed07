// WindowPacker: orders of encodes and writes that fill the windows between obstacles.
//
// What an obstacle costs beside its own length is the rest of the window before it, into which the
// next operation does not fit. So a window is packed as a bin: operations in the order of a list
// as long as they fit, then exchanged for others further down the list, until little is left. The
// encodes are packed first, window by window; then the writes, each window from those that are
// encoded by then.
//
// Ours; the exchange is local search for the subset-sum problem. The orders are only a proposal:
// schedule_in_order places them, and no plan is worse for a window that was packed badly.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "schedule/flow_shop.hpp"

namespace tailrace {

/// In which order writes that wait are taken while they cannot fill the window.
enum class WritePriority : std::uint8_t { first_encoded, longest, shortest };

/// Not thread-safe. Allocates when it is made, not when it packs.
class WindowPacker {
 public:
  using Index = std::uint32_t;  ///< Half of a size_t: the lists are what the caches hold.

  explicit WindowPacker(const FlowShop& shop);

  /// Pack the encodes by `list`. An operation is exchanged for one of the `reach` behind it in the
  /// list; 0: never. The last two of the list keep their place: their writes end the plan.
  void pack_encodes(std::span<const Index> list, std::size_t reach);

  /// Pack the writes behind the encodes as packed last; returns the makespan.
  double pack_writes(WritePriority priority);

  std::span<const Index> encode_order() const { return encode_order_; }
  std::span<const Index> write_order() const { return write_order_; }

  /// Work done so far, in operations placed (SearchBudget).
  std::uint64_t n_operations() const { return n_inspected_ / n_inspected_per_operation; }

 private:
  /// Looking at an exchange takes about a quarter of placing an operation.
  static constexpr std::uint64_t n_inspected_per_operation = 4;

  /// The front of `list` that a window of window_s takes, after exchanges; returns how many.
  std::size_t pack_window(std::span<Index> list, std::size_t reach,
                          const std::vector<double>& lengths_s, double window_s);
  /// Exchange among list[0, taken) and what is behind, so that less than left_s is left; updates
  /// `taken` where one more fits. Returns what is left.
  double fill_up(std::span<Index> list, std::size_t& taken, const std::vector<double>& lengths_s,
                 double left_s, double enough_s);
  /// The other way: list[0, taken) is too long by excess_s; exchange until it fits. Returns what
  /// is left then, or less than 0.
  double thin_out(std::span<Index> list, std::size_t taken, const std::vector<double>& lengths_s,
                  double excess_s);

  const FlowShop& shop_;
  std::vector<double> encode_s_;
  std::vector<double> write_s_;
  std::vector<double> ready_s_;  ///< By job: end of its encode.
  std::vector<Index> rank_;      ///< By job: place in the list.
  std::vector<Index> encode_order_;
  std::vector<Index> write_order_;
  std::vector<Index> waiting_;  ///< Writes that are ready, by priority.
  std::vector<Index> longer_;   ///< A window's list, packed from the other side.
  std::uint64_t n_inspected_ = 0;
};

}  // namespace tailrace
