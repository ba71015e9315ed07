// Choose: sampling runs, the cost of every candidate, and the decision.

#include "codec/trz/choose.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <limits>

#include "codec/trz/lattice.hpp"
#include "codec/trz/sample_kernels.hpp"

namespace tailrace::trz {
namespace {

constexpr std::size_t kRunsMax = 128;
constexpr std::size_t kRunsMin = 8;
/// Bits a value: where nearly all codes are zero, a pyramid spends its few on coarse levels.
constexpr double kFlatPenalty = 0.01;
constexpr std::size_t kValuesPerRun = 4096;  // One run of 32 for each of these: 0.8 %.

/// log2 by its series for artanh: the C library's may differ between machines.
double log2_of(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const int exponent = static_cast<int>((bits >> 52) & 0x7FF) - 1023;
  const double m = std::bit_cast<double>((bits & 0x000FFFFFFFFFFFFFULL) | 0x3FF0000000000000ULL);
  const double t = (m - 1.5) / (m + 1.5);  // m = 1.5 (1 + t) / (1 - t), |t| <= 0.2
  const double t2 = t * t;
  const double series =
      t * (1 + t2 * (1.0 / 3 + t2 * (1.0 / 5 + t2 * (1.0 / 7 + t2 * (1.0 / 9 + t2 / 11)))));
  constexpr double log2_of_e = 1.4426950408889634;
  constexpr double log2_of_1_5 = 0.5849625007211562;
  return exponent + log2_of_1_5 + 2 * log2_of_e * series;
}

template <class T>
T rounded_down(double bound) {
  const T nearest = static_cast<T>(bound);
  return static_cast<double>(nearest) > bound ? std::nextafter(nearest, T(0)) : nearest;
}

/// Splits a position in the chunk; a small generator scatters the runs, the same ones each time.
struct Scatter {
  std::uint64_t state = 0x9E3779B97F4A7C15ULL;
  std::size_t below(std::size_t limit) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    return static_cast<std::size_t>(((state >> 32) * limit) >> 32);
  }
};

template <class T>
class Sampler {
 public:
  Sampler(const T* values, const Extents& extents, const T* fill, double bound)
      : values_(values), extents_(extents), fill_(fill), bound_(rounded_down<T>(bound)) {
    const std::size_t n = extents[0] * extents[1] * extents[2] * extents[3];
    n_runs_ = std::clamp(n / kValuesPerRun, kRunsMin, kRunsMax);
    // Strata along the slowest axes, so that no part of the chunk is left out.
    Scatter scatter;
    const std::size_t n_rows = n / extents[3];
    for (std::size_t r = 0; r < n_runs_; ++r) {
      const std::size_t low = n_rows * r / n_runs_;
      const std::size_t high = std::max(low + 1, n_rows * (r + 1) / n_runs_);
      const std::size_t row = std::min(low + scatter.below(high - low), n_rows - 1);
      const std::size_t n_starts = extents[3] > kRunValues ? extents[3] - kRunValues + 1 : 1;
      const std::size_t low_x = n_rows >= n_runs_ ? 0 : n_starts * r / n_runs_;
      const std::size_t high_x = n_rows >= n_runs_ ? n_starts : n_starts * (r + 1) / n_runs_;
      const std::size_t x = low_x + (high_x > low_x ? scatter.below(high_x - low_x) : 0);
      runs_[r] = {row / (extents[1] * extents[2]), row / extents[2] % extents[1], row % extents[2],
                  std::min(x, n_starts - 1)};
    }
  }

  /// A first look: typical value, shares of special values, constancy.
  void look(Sampled& sampled) {
    std::array<T, kRunsMax * 4> seen;
    std::size_t n_seen = 0;
    std::size_t n_special = 0;
    std::size_t n_all = 0;
    const T* first = value_at(runs_[0], 0);
    sampled.all_equal = true;
    for (std::size_t r = 0; r < n_runs_; ++r) {
      for (std::size_t i = 0; i < kRunValues; ++i) {
        const T* value = value_at(runs_[r], i);
        sampled.all_equal = sampled.all_equal && bits(*value) == bits(*first);
        ++n_all;
        if (special(*value)) {
          ++n_special;
        } else if (i % 8 == 0) {
          seen[n_seen++] = *value;
        }
      }
    }
    sampled.special_share = static_cast<double>(n_special) / static_cast<double>(n_all);
    if (n_seen > 0) {
      const auto middle = seen.begin() + static_cast<std::ptrdiff_t>(n_seen / 2);
      std::nth_element(seen.begin(), middle, seen.begin() + static_cast<std::ptrdiff_t>(n_seen));
      sampled.offset = static_cast<double>(*middle);
    }
    offset_ = sampled.offset;
  }

  /// Codes per candidate; `costs` in bits a value.
  void measure(Sampled& sampled, std::array<double, n_sample_candidates>& costs, Isa isa) {
    step_ = 2 * static_cast<double>(bound_) * (1 - 0x1p-10);
    const SampleKernels& kernels = sample_kernels(isa);
    costs.fill(0);
    double rows[n_sample_rows][kRowValues];
    std::uint64_t sums[n_sample_candidates];
    for (std::size_t r = 0; r < n_runs_; ++r) {
      load_rows(runs_[r], rows);
      kernels.measure(rows, sums);
      for (std::size_t c = 0; c < n_sample_candidates; ++c) {
        costs[c] += entropy_of_mean(static_cast<double>(sums[c]) / kRunValues);
      }
    }
    for (double& cost : costs) cost /= static_cast<double>(n_runs_);
    measure_fit(sampled);
  }

 private:
  struct Run {
    std::size_t t, z, y, x;
  };

  static auto bits(T value) {
    if constexpr (sizeof(T) == 4) {
      return std::bit_cast<std::uint32_t>(value);
    } else {
      return std::bit_cast<std::uint64_t>(value);
    }
  }
  bool special(T value) const {
    return !std::isfinite(value) || (fill_ != nullptr && value == *fill_);
  }
  const T* value_at(const Run& run, std::size_t i) const {
    const std::size_t row = (run.t * extents_[1] + run.z) * extents_[2] + run.y;
    return values_ + row * extents_[3] + std::min(run.x + i, extents_[3] - 1);
  }

  static std::size_t shifted(std::size_t at, int by, std::size_t extent) {
    const auto moved = static_cast<std::ptrdiff_t>(at) + by;
    return static_cast<std::size_t>(
        std::clamp<std::ptrdiff_t>(moved, 0, static_cast<std::ptrdiff_t>(extent) - 1));
  }

  /// u of one row around a run; special values take the last ordinary one's.
  void load_row(const Run& run, int dt, int dz, int dy, double* row) const {
    const Run at{shifted(run.t, dt, extents_[0]), shifted(run.z, dz, extents_[1]),
                 shifted(run.y, dy, extents_[2]), 0};
    const T* from = value_at(at, 0);
    const double inverse_step = 1 / step_;
    double held = 0;
    for (std::size_t i = 0; i < kRowValues; ++i) {
      const std::size_t x = shifted(run.x + i, -static_cast<int>(kRunMargin), extents_[3]);
      const T value = from[x];
      if (!special(value)) held = (static_cast<double>(value) - offset_) * inverse_step;
      row[i] = std::clamp(held, -0x1p50, 0x1p50);
    }
  }

  void load_rows(const Run& run, double (*rows)[kRowValues]) const {
    static constexpr int at[n_sample_rows][3] = {
        {0, 0, 0}, {0, 0, -1}, {0, -1, 0}, {0, -1, -1}, {0, 0, 1},   {0, 0, -3},  {0, 0, 3},
        {0, 1, 0}, {0, -3, 0}, {0, 3, 0},  {-1, 0, 0},  {-1, 0, -1}, {-1, -1, 0}, {-1, -1, -1}};
    for (std::size_t r = 0; r < n_sample_rows; ++r) {
      const bool unused = (at[r][0] != 0 && extents_[0] == 1) ||
                          (at[r][1] != 0 && extents_[1] == 1) ||
                          (at[r][2] != 0 && extents_[2] == 1);
      if (unused) {
        std::fill_n(rows[r], kRowValues, 0.0);
      } else {
        load_row(run, at[r][0], at[r][1], at[r][2], rows[r]);
      }
    }
  }

  void measure_fit(Sampled& sampled) const {
    const T step = static_cast<T>(step_);
    const T offset = static_cast<T>(offset_);
    std::size_t n_values = 0;
    std::size_t n_misfits = 0;
    std::size_t n_coarse = 0;
    for (std::size_t r = 0; r < n_runs_; ++r) {
      for (std::size_t i = 0; i < kRunValues; ++i) {
        const T value = *value_at(runs_[r], i);
        if (special(value)) continue;
        ++n_values;
        const T spacing = std::abs(value) * std::numeric_limits<T>::epsilon();
        if (!(spacing < bound_)) ++n_coarse;
        const T q = std::nearbyint((value - offset) / step);
        constexpr T limit = sizeof(T) == 4 ? T(0x1p22) : T(0x1p31);
        if (!(std::abs(q) < limit) || !(std::abs(value - (offset + q * step)) < bound_)) {
          ++n_misfits;
        }
      }
    }
    if (n_values == 0) return;
    sampled.misfit_share = static_cast<double>(n_misfits) / static_cast<double>(n_values);
    sampled.coarse_share = static_cast<double>(n_coarse) / static_cast<double>(n_values);
  }

  const T* values_;
  Extents extents_;
  const T* fill_;
  T bound_;
  double offset_ = 0;
  double step_ = 1;
  std::size_t n_runs_ = 0;
  std::array<Run, kRunsMax> runs_;
};

// --- the decision ------------------------------------------------------------------------------

using Costs = std::array<double, n_sample_candidates>;

/// Best spline of an axis (0 = x), or the one that the user wants.
RowSpline best_spline(const Costs& costs, std::size_t axis, Spline wanted, double* cost) {
  const std::size_t first = kLinearX + 3 * axis;
  std::size_t best = 1;
  if (wanted != Spline::automatic) {
    best = static_cast<std::size_t>(wanted) - 1;
  } else {
    for (const std::size_t k : {std::size_t{0}, std::size_t{2}}) {
      if (costs[first + k] < costs[first + best]) best = k;
    }
  }
  *cost = costs[first + best];
  return static_cast<RowSpline>(best);
}

/// Cost of interpolation whose last pass goes along `last`: half of all points are predicted along
/// it, a quarter along the next, and so on; coarser levels cost `coarser` more each.
Prediction interpolation_of(const Costs& costs, const Extents& extents, int last,
                            const Settings& settings) {
  Prediction prediction;
  prediction.interpolated = true;
  prediction.plan.last_axis = last;
  std::array<double, 3> cost{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    prediction.plan.spline[axis] = best_spline(costs, axis, settings.spline, &cost[axis]);
  }
  // Passes, last first: by last_axis x y z, y x z, z y x.
  static constexpr std::size_t passes[3][3] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}};
  double share = 0.5;
  double total = 0;
  double covered = 0;
  for (const std::size_t axis : passes[last]) {
    if (extents[3 - axis] == 1) continue;
    total += share * cost[axis];
    covered += share;
    share /= 2;
  }
  if (covered == 0) return prediction;
  const double coarser = std::clamp(costs[kCoarseX] - costs[kCubicX], 0.0, 4.0);
  const double mean_level = (1 - covered) / covered;
  prediction.bits_per_value = total / covered + coarser * mean_level;
  return prediction;
}

/// Cost of joint prediction: per level, points odd along one axis are predicted along it, points
/// odd along two or three by the mean of what these say, which the sample measures with equal
/// shares; with shares by accuracy it is never worse than the best of them.
Prediction joint_of(const Costs& costs, const Extents& extents, const Settings& settings) {
  Prediction prediction;
  prediction.interpolated = true;
  prediction.plan.last_axis = kJoint;
  std::array<double, 3> cost{};
  double least = 64;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    prediction.plan.spline[axis] = best_spline(costs, axis, settings.spline, &cost[axis]);
    if (extents[3 - axis] > 1) least = std::min(least, cost[axis]);
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    // A bit more is twice the error, and a quarter of the weight if errors are independent.
    double weight = 15;
    for (double worse = cost[axis] - least; worse > 0.125 && weight > 0.5; worse -= 0.25) {
      weight *= 0.72;
    }
    prediction.plan.axis_weight[axis] = static_cast<std::uint8_t>(weight + 0.5);
  }
  const double x = cost[0];
  const double y = cost[1];
  const double z = cost[2];
  const double xy = std::min({costs[kJointXY], x, y});
  double total = x + y + xy;
  double share = 0.25;
  if (extents[1] > 1) {
    const double xz = std::min({costs[kJointXZ], x, z});
    const double yz = std::min({costs[kJointYZ], y, z});
    total += z + xz + yz + std::min({costs[kJointXYZ], xy, xz, yz});
    share = 0.125;
  }
  const double coarser = std::clamp(costs[kCoarseX] - costs[kCubicX], 0.0, 4.0);
  prediction.bits_per_value = total * share / (1 - share) + coarser * share / (1 - share);
  return prediction;
}

/// Tighter steps at coarse levels pay where codes are nearly all zero: their values predict many.
void choose_level_steps(Prediction& prediction) {
  InterpolationPlan& plan = prediction.plan;
  if (prediction.bits_per_value < 0.5) {
    plan.alpha_16 = 24;
    plan.beta_16 = 48;
  } else if (prediction.bits_per_value < 1.5) {
    plan.alpha_16 = 20;
    plan.beta_16 = 32;
  }
}

}  // namespace

double entropy_of_mean(double mean) {
  if (!(mean > 0)) return 0;
  const double theta = (std::sqrt(1 + mean * mean) - 1) / mean;
  if (!(theta < 1)) return 64;
  return -log2_of((1 - theta) / (1 + theta)) - mean * log2_of(theta);
}

template <class T>
Sampled sample_chunk(const T* values, const Extents& extents, const T* fill, double bound,
                     const Settings& settings, Isa isa) {
  Sampled sampled;
  Sampler<T> sampler(values, extents, fill, bound);
  sampler.look(sampled);
  Costs costs;
  sampler.measure(sampled, costs, isa);

  std::array<Prediction, 10> candidates;
  std::size_t n_candidates = 0;
  const auto wanted = settings.predictor;
  const bool any = wanted == Predictor::automatic;
  if (any || wanted == Predictor::none) {
    candidates[n_candidates++] = {false, 0, {}, costs[kNone] + kFlatPenalty};
  }
  if (any || wanted == Predictor::lorenzo) {
    for (int order = 1; order <= 4; ++order) {
      const bool flat = order > 1 && extents[static_cast<std::size_t>(4 - order)] == 1;
      const bool excluded = settings.dimensions != 0 && settings.dimensions != order;
      const bool only_one = wanted == Predictor::lorenzo && settings.dimensions == order;
      if ((flat || excluded) && !only_one) continue;
      candidates[n_candidates++] = {
          false, order, {}, costs[kNone + static_cast<std::size_t>(order)] + kFlatPenalty};
    }
  }
  const bool interpolable = settings.preset != Preset::fast || wanted == Predictor::interpolation;
  if (interpolable && (any || wanted == Predictor::interpolation)) {
    const bool several_axes = extents[2] > 1;
    if (several_axes && (settings.last_axis < 0 || settings.last_axis == kJoint)) {
      candidates[n_candidates++] = joint_of(costs, extents, settings);
    }
    for (int last = 0; last < 3; ++last) {
      const bool flat = last > 0 && extents[static_cast<std::size_t>(3 - last)] == 1;
      if (flat || (settings.last_axis >= 0 && settings.last_axis != last)) continue;
      candidates[n_candidates++] = interpolation_of(costs, extents, last, settings);
    }
    if (n_candidates == 0) {
      candidates[n_candidates++] = interpolation_of(costs, extents, 0, settings);
    }
  }
  std::stable_sort(
      candidates.begin(), candidates.begin() + static_cast<std::ptrdiff_t>(n_candidates),
      [](const Prediction& a, const Prediction& b) { return a.bits_per_value < b.bits_per_value; });
  sampled.best = candidates[0];
  sampled.second = candidates[0];
  for (std::size_t c = 1; c < n_candidates; ++c) {
    if (candidates[c].interpolated != sampled.best.interpolated) {
      sampled.second = candidates[c];
      break;
    }
  }
  for (Prediction* prediction : {&sampled.best, &sampled.second}) {
    if (prediction->interpolated) choose_level_steps(*prediction);
  }
  return sampled;
}

template Sampled sample_chunk(const float*, const Extents&, const float*, double, const Settings&,
                              Isa);
template Sampled sample_chunk(const double*, const Extents&, const double*, double, const Settings&,
                              Isa);

}  // namespace tailrace::trz
