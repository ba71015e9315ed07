// Size of a rank's arena: the run of the file into which the rank packs all its chunks.
//
// With a slot per chunk, unused space of one chunk does not help another that is too large. In an
// arena only the sum of a rank's sizes matters, and errors of single predictions cancel: the sum of
// n independent ones is sqrt(n) times more accurate. So the margin follows from the predictions'
// deviations and from the permitted share of overflows, not from a fixed ratio. It is the smallest
// margin with the permitted expected share of overflowing chunks. If the margin that leaves the
// least space unused is larger, that one applies. Neither exceeds what slots would reserve.
// Source: ours, instead of the slots of Jin et al. 2022, section III-D.

#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "core/options.hpp"

namespace tailrace {

/// Share of a chunk's variance that it has in common with all other chunks of its field (a new
/// physical state, a changed bound). This part does not cancel.
/// Measured (lab/bench/micro/layout_space, first steps, trz): 0.7 to 0.9.
inline constexpr double kCommonVarianceShare = 0.8;
/// Assumed deviation if it is unknown, as a fraction of a chunk's expected bytes.
inline constexpr double kUnknownDeviation = 0.1;

/// Permitted share of overflowing chunks; interpolated geometrically by the goal's weight.
inline constexpr double kOverflowShareStorage = 0.005;
inline constexpr double kOverflowSharePerformance = 0.0003;
/// Limits of the margin in standard deviations. The lower one matters for many chunks, of which a
/// few may overflow anyway: a smaller margin would rely too much on the deviations.
inline constexpr double kFewestDeviations = 0.5;
inline constexpr double kMostDeviations = 4;

/// Expected sizes of one rank's chunks of one field.
struct ArenaField {
  SpaceGoal goal;
  std::uint64_t n_chunks = 0;
  double expected_bytes = 0;
  double deviations = 0;  ///< Sum of standard deviations, bytes.
  double variance = 0;    ///< Sum of their squares.

  /// @param deviation_bytes  0: unknown.
  void add(double chunk_bytes, double deviation_bytes);
};

/// Bytes to reserve for the chunks of all these fields together. If a field's goal has a ratio, the
/// ratio applies; for the others the strictest goal applies. Not collective. Thread-safe. Cost:
/// O(fields).
std::uint64_t arena_bytes(std::span<const ArenaField> fields);

/// Expected share of overflowing chunks, if the sum of `n_chunks` sizes is normal with this
/// deviation and `margin` deviations are reserved beyond its mean. Counts one chunk if the sum is
/// too large, and one more per mean chunk's bytes of excess.
double expected_overflow_share(double margin, std::uint64_t n_chunks, double mean_chunk_bytes,
                               double deviation_bytes);

// --- The extra space ratio of the layout predictive: reserved over predicted bytes.
//
// Source: Jin et al. 2022, section III-D. Figure 9 maps the weights of performance and storage to a
// ratio; eq. 3 increases it if the compression ratio is so high that predictions are inaccurate.

inline constexpr double kSmallestSpaceRatio = 1.1;  ///< A third of the chunks overflow below it.
inline constexpr double kUsualSpaceRatio = 1.25;    ///< Equal weights.
inline constexpr double kLargestSpaceRatio = 1.43;  ///< More space hardly saves any time.
inline constexpr double kWidenedAboveRatio = 32;    ///< Compression ratio; eq. 3.
inline constexpr double kWidening = 4;              ///< Factor of the extra space; eq. 3.
inline constexpr double kLargestWidenedRatio = 2;   ///< eq. 3.

class Layout;
Result<std::unique_ptr<Layout>> make_arena_layout(const FieldOptions& options);

/// R_space of a goal: its ratio if it has one, else by the performance weight, figure 9.
double space_ratio(const SpaceGoal& goal);

/// r_space (eq. 3) of a chunk with this predicted compression ratio. @param ratio  R_space, >= 1.
double space_ratio_at(double ratio, double compression_ratio);

}  // namespace tailrace
