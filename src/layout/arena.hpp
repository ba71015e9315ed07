// How large a rank's arena is: the run of the file into which all its chunks are packed.
//
// In a slot per chunk, what one chunk leaves free is no use to the next that is too large. In an
// arena only the sum of a rank's sizes matters, in which the errors of single predictions cancel:
// the sum of n independent ones is known sqrt(n) times better. So the margin follows from the
// predictions' own deviations and from how many chunks may overflow, not from a fixed ratio: it is
// the smallest for which the expected share of overflowing chunks is as asked, or the one that
// leaves the least unused if that is larger; at most what slots would keep. Source: ours, in place
// of the slots of Jin et al. 2022, section III-D.

#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/options.hpp"

namespace tailrace {

/// Which part of a chunk's variance it shares with all other chunks of its field (a new physical
/// state, a changed bound): this part does not cancel.
/// Measured (lab/bench/micro/layout_space, first steps, trz): 0.7 to 0.9.
inline constexpr double common_variance_share = 0.8;
/// Taken for a chunk whose deviation is not known, as a fraction of its expected bytes.
inline constexpr double unknown_deviation = 0.1;

/// Share of chunks that may be expected to overflow; geometric between these by the goal's weight.
inline constexpr double overflow_share_storage = 0.005;
inline constexpr double overflow_share_performance = 0.0003;
/// Limits of the margin in standard deviations. The lower one is for many chunks, of which a few
/// may overflow in any case: whoever trusts the deviations that far would trust them too much.
inline constexpr double fewest_deviations = 0.5;
inline constexpr double most_deviations = 4;

/// What one rank's chunks of one field are expected to come to.
struct ArenaField {
  SpaceGoal goal;
  std::uint64_t n_chunks = 0;
  double expected_bytes = 0;
  double deviations = 0;  ///< Sum of standard deviations, bytes.
  double variance = 0;    ///< Sum of their squares.

  /// @param deviation_bytes  0: not known.
  void add(double chunk_bytes, double deviation_bytes);
};

/// Bytes to reserve for all these fields' chunks together. A field whose goal names a ratio gets
/// that, for the others the strictest goal counts. Not collective. Thread-safe. Cost: O(fields).
std::uint64_t arena_bytes(std::span<const ArenaField> fields);

/// Expected share of overflowing chunks, if the sum of `n_chunks` sizes is normal with this
/// deviation and `margin` times the deviation is reserved beyond its mean: one chunk whenever the
/// sum is too large, and one more per mean chunk's bytes of excess.
double expected_overflow_share(double margin, std::uint64_t n_chunks, double mean_chunk_bytes,
                               double deviation_bytes);

// --- The extra space ratio of the layout predictive: reserved over predicted bytes.
//
// Source: Jin et al. 2022, section III-D: figure 9 maps the weights of performance and storage to a
// ratio, eq. 3 widens it where the compression ratio is so high that predictions are poor.

inline constexpr double smallest_space_ratio = 1.1;  ///< Below, a third of the chunks overflow.
inline constexpr double usual_space_ratio = 1.25;    ///< Equal weights.
inline constexpr double largest_space_ratio = 1.43;  ///< Above, space buys hardly any time.
inline constexpr double widened_above_ratio = 32;    ///< Compression ratio; eq. 3.
inline constexpr double widening = 4;                ///< Of the extra space; eq. 3.
inline constexpr double largest_widened_ratio = 2;   ///< eq. 3.

class Layout;
Result<std::unique_ptr<Layout>> make_arena_layout(const FieldOptions& options);

/// R_space of a goal: its ratio if it names one, else by the performance weight, figure 9.
double space_ratio(const SpaceGoal& goal);

/// r_space (eq. 3) of a chunk with this predicted compression ratio. @param ratio  R_space, >= 1.
double space_ratio_at(double ratio, double compression_ratio);

}  // namespace tailrace
