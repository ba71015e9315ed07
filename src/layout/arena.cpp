// The layout arena and its margin; the extra space ratio of the layout predictive.

#include "layout/arena.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "layout/layout.hpp"

namespace tailrace {

namespace {

class ArenaLayout final : public Layout {
 public:
  explicit ArenaLayout(const SpaceGoal& goal) : goal_(goal) {}
  std::string_view name() const override { return "arena"; }
  SizesNeeded sizes_needed() const override { return SizesNeeded::predicted; }
  BaseFrom base_from() const override { return BaseFrom::prefix; }
  const SpaceGoal* arena_goal() const override { return &goal_; }
  /// The arena packs chunks by their encoded size, not by the expected one.
  std::uint64_t capacity(const ChunkSizes& sizes) const override { return sizes.encoded_bytes; }

 private:
  SpaceGoal goal_;
};

double overflow_share_allowed(const SpaceGoal& goal) {
  const double w = std::clamp(goal.performance_weight, 0.0, 1.0);
  return kOverflowShareStorage * std::pow(kOverflowSharePerformance / kOverflowShareStorage, w);
}

double normal_density(double x) {
  return std::exp(-x * x / 2) * std::numbers::inv_sqrtpi / std::numbers::sqrt2;
}

double normal_beyond(double x) { return std::erfc(x / std::numbers::sqrt2) / 2; }

/// Smallest margin within the limits for which `is_enough` holds, to 1/64 of a deviation.
template <class IsEnough>
double least_margin(IsEnough&& is_enough) {
  double too_small = kFewestDeviations;
  double enough = kMostDeviations;
  if (is_enough(too_small)) return too_small;
  while (enough - too_small > 1.0 / 64) {
    const double middle = (too_small + enough) / 2;
    (is_enough(middle) ? enough : too_small) = middle;
  }
  return enough;
}

/// Margin that achieves the permitted share of overflows, or the one that leaves the least space
/// unused if that is larger. When a chunk overflows, about half of its size stays unused at the
/// arena's end. So a larger margin saves space until its cost equals this gain.
double margin_for(double share, std::uint64_t n_chunks, double mean_bytes, double deviation_bytes) {
  const double for_share = least_margin([&](double margin) {
    return expected_overflow_share(margin, n_chunks, mean_bytes, deviation_bytes) <= share;
  });
  const auto n = static_cast<double>(n_chunks);
  // Unused after an overflow: about half a chunk, but the whole arena if it is for one chunk.
  const double left_bytes = mean_bytes * (n + 1) / (2 * n);
  const double for_space = least_margin([&](double margin) {
    const double cost = deviation_bytes * (1 - normal_beyond(margin));
    return normal_density(margin) * left_bytes <= cost;
  });
  return std::max(for_share, for_space);
}

}  // namespace

void ArenaField::add(double chunk_bytes, double deviation_bytes) {
  const double deviation = deviation_bytes > 0 ? deviation_bytes : kUnknownDeviation * chunk_bytes;
  ++n_chunks;
  expected_bytes += chunk_bytes;
  deviations += deviation;
  variance += deviation * deviation;
}

double expected_overflow_share(double margin, std::uint64_t n_chunks, double mean_chunk_bytes,
                               double deviation_bytes) {
  const double beyond = normal_beyond(margin);
  const double excess_bytes = deviation_bytes * (normal_density(margin) - margin * beyond);
  const double n_overflows = beyond + excess_bytes / mean_chunk_bytes;
  return std::min(n_overflows / static_cast<double>(n_chunks), 1.0);
}

std::uint64_t arena_bytes(std::span<const ArenaField> fields) {
  double bytes = 0;  // expected bytes, and the margins of explicit ratios
  double pooled_bytes = 0;
  double variance = 0;
  double share = 1;
  double most_bytes = 0;  // About what slots reserve: limits the effect of one erratic step.
  std::uint64_t n_chunks = 0;
  for (const ArenaField& field : fields) {
    if (field.n_chunks == 0) continue;
    bytes += field.expected_bytes * std::max(field.goal.ratio, 1.0);
    if (field.goal.ratio > 0) continue;
    pooled_bytes += field.expected_bytes;
    n_chunks += field.n_chunks;
    variance += (1 - kCommonVarianceShare) * field.variance +
                kCommonVarianceShare * field.deviations * field.deviations;
    const double most_ratio = std::max(space_ratio(field.goal), kUsualSpaceRatio);
    most_bytes += field.expected_bytes * (most_ratio - 1);
    share = std::min(share, overflow_share_allowed(field.goal));
  }
  if (n_chunks > 0 && pooled_bytes > 0) {
    const double deviation = std::sqrt(variance);
    const double mean_bytes = pooled_bytes / static_cast<double>(n_chunks);
    const double margin_bytes = deviation * margin_for(share, n_chunks, mean_bytes, deviation);
    bytes += std::min(margin_bytes, most_bytes);
  }
  return static_cast<std::uint64_t>(std::ceil(bytes));
}

Result<std::unique_ptr<Layout>> make_arena_layout(const FieldOptions& options) {
  return std::unique_ptr<Layout>(std::make_unique<ArenaLayout>(options.space));
}

// --- Figure 9 as a parabola through its three known points, and eq. 3.

double space_ratio(const SpaceGoal& goal) {
  if (goal.ratio > 0) return goal.ratio;
  // Through (0, smallest), (1/2, usual) and (1, largest).
  const double w = std::clamp(goal.performance_weight, 0.0, 1.0);
  const double bend = 2 * (kSmallestSpaceRatio + kLargestSpaceRatio - 2 * kUsualSpaceRatio);
  const double slope = kLargestSpaceRatio - kSmallestSpaceRatio - bend;
  return kSmallestSpaceRatio + w * (slope + w * bend);
}

double space_ratio_at(double ratio, double compression_ratio) {
  if (compression_ratio <= kWidenedAboveRatio) return ratio;
  // Keep an R_space above 2, which only a user can have set.
  return std::max(ratio, std::min(kLargestWidenedRatio, 1 + (ratio - 1) * kWidening));
}

}  // namespace tailrace
