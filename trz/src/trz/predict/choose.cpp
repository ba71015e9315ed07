// Choice of a chunk's predictor: the candidates, their costs, and the decision.

#include "trz/predict/choose.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "trz/entropy/code_stream.hpp"
#include "trz/predict/sampler.hpp"

namespace tailrace::trz {

namespace {

constexpr std::size_t kPeriodMin = 32;
constexpr std::size_t kPeriodMax = 8192;
constexpr std::size_t kPeriodsMax = 40;
constexpr std::size_t kDivisorsMax = 256;
constexpr std::size_t kFoldsMin = 8;  ///< Minimum number of rows that one row becomes.
constexpr std::size_t kPeriodRunsMin = 4;
constexpr std::size_t kRunsMaximum = 16;
constexpr double kLeastGain = 0.01;  ///< Bits per value.
constexpr double kTie = 0.001;

struct Periods {
  std::array<std::size_t, kPeriodsMax> length;
  std::size_t n = 0;
};

/// Divisors of `extent` that may be periods, ascending.
Periods divisors_of(std::size_t extent) {
  const std::size_t limit = std::min(kPeriodMax, extent / kFoldsMin);
  std::array<std::size_t, kDivisorsMax> divisors = {1};
  std::size_t n = 1;
  const auto multiply = [&](std::size_t prime, std::size_t n_before) {
    for (std::size_t k = 0; k < n_before && n < kDivisorsMax; ++k) {
      const std::size_t product = divisors[n - n_before] * prime;
      if (product > limit) return k;
      divisors[n++] = product;
    }
    return n_before;
  };
  auto left = static_cast<std::uint32_t>(extent);
  for (std::uint32_t prime = 2; prime <= limit && left > 1; ++prime) {
    if (prime * prime > left) prime = left;
    std::size_t n_new = n;
    while (left % prime == 0) {
      left /= prime;
      n_new = multiply(prime, n_new);
    }
  }
  std::sort(divisors.begin(), divisors.begin() + static_cast<std::ptrdiff_t>(n));
  Periods periods;
  for (std::size_t k = 0; k < n && periods.n < kPeriodsMax; ++k) {
    if (divisors[k] >= kPeriodMin) periods.length[periods.n++] = divisors[k];
  }
  return periods;
}

}  // namespace

template <class T>
std::size_t find_period(const SampledValues<T>& chunk, const Extents& extents,
                        std::size_t values_per_run, Isa isa) {
  const std::size_t extent = extents[3];
  if (extent < kPeriodMin * kFoldsMin || extent > std::numeric_limits<std::uint32_t>::max()) {
    return 0;
  }
  const Periods periods = divisors_of(extent);
  if (periods.n == 0) return 0;
  const SampleKernels& kernels = sample_kernels(isa);
  const std::size_t n_rows = extents[0] * extents[1] * extents[2];
  const std::size_t n_runs =
      std::clamp(n_rows * extent / (8 * values_per_run), kPeriodRunsMin, kRunsMaximum);
  const std::size_t first = periods.length[periods.n - 1] + kRunMargin;
  const std::size_t n_starts = extent - first - kRunValues - kRunMargin;
  const T fill = chunk.fill == nullptr ? std::numeric_limits<T>::quiet_NaN() : *chunk.fill;
  std::array<double, kPeriodsMax> cost{};
  double cost_alone = 0;
  Scatter scatter;
  for (std::size_t r = 0; r < n_runs; ++r) {
    const std::size_t low = n_starts * r / n_runs;
    const std::size_t x = low + scatter.below(std::max<std::size_t>(n_starts / n_runs, 1));
    const std::size_t at = scatter.below(n_rows) * extent + first + x - kRunMargin;
    T buffer[kRowValues];
    double here[kRowValues];
    double there[kRowValues] = {};
    if (!load_row(kernels, chunk.run(at, kRowValues, buffer), chunk, fill, here)) continue;
    cost_alone += RunCosts::table().of(kernels.sum_of_differences(here, there));
    for (std::size_t k = 0; k < periods.n; ++k) {
      const T* before = chunk.run(at - periods.length[k], kRowValues, buffer);
      if (!load_row(kernels, before, chunk, fill, there)) return 0;
      cost[k] += RunCosts::table().of(kernels.sum_of_differences(here, there));
    }
  }
  const auto n = static_cast<double>(n_runs);
  const double least =
      *std::min_element(cost.begin(), cost.begin() + static_cast<std::ptrdiff_t>(periods.n));
  if (least > cost_alone - kLeastGain * n) return 0;
  // Choose the shortest period that is equally good.
  std::size_t k = 0;
  while (cost[k] > least + kTie * n) ++k;
  return periods.length[k];
}

template std::size_t find_period(const SampledValues<float>&, const Extents&, std::size_t, Isa);
template std::size_t find_period(const SampledValues<double>&, const Extents&, std::size_t, Isa);

// --- Quantum: estimated from the smallest difference of two values, refined by greater ones.

namespace {

constexpr std::size_t kValuesMin = 32;
constexpr std::size_t kValuesMax = 512;
constexpr int kPartsMax = 6;          ///< Maximum number of quanta in the smallest difference.
constexpr double kRoundingUlps = 2;   ///< Error of a difference, in spacings of the largest value.
constexpr double kToleranceMin = 12;  ///< Minimum ratio of a quantum to that error.

/// Find a number with few decimals within `error` of a value; `value` itself if none.
double with_few_decimals(double value, double error) {
  double scale = 1;
  for (int digits = 0; digits < 10; ++digits, scale *= 10) {
    const double near = std::nearbyint(value * scale) / scale;
    if (near > 0 && std::abs(near - value) <= error) return near;
  }
  return value;
}

/// A quantum that each greater distance estimates more precisely.
class Ruler {
 public:
  Ruler(double quantum, double tolerance)
      : quantum_(quantum), tolerance_(tolerance), error_(tolerance) {}

  /// True if the distance is a multiple of the quantum within its error. False also if the error is
  /// too large to decide.
  bool measures(double distance) {
    const double n = std::nearbyint(distance / quantum_);
    const double slack = tolerance_ + n * error_;
    if (slack > quantum_ / 4 || std::abs(distance - n * quantum_) > slack) return false;
    if (n > farthest_) {
      farthest_ = n;
      quantum_ = distance / n;
      error_ = tolerance_ / n;
    }
    return true;
  }
  double quantum() const { return with_few_decimals(quantum_, error_); }

 private:
  double quantum_;
  double tolerance_;
  double error_;
  double farthest_ = 1;
};

/// Measure the gaps between neighbouring values, in ascending order, then the distances from the
/// first value. 0: the quantum does not fit.
template <class T>
double sharpened(std::span<const T> values, std::span<const double> gaps, double quantum,
                 double tolerance) {
  Ruler ruler(quantum, tolerance);
  for (const double gap : gaps) {
    if (!ruler.measures(gap)) return 0;
  }
  const auto base = static_cast<double>(values[0]);
  for (const T value : values) {
    if (!ruler.measures(static_cast<double>(value) - base)) return 0;
  }
  return ruler.quantum();
}

}  // namespace

template <class T>
double find_quantum(std::span<T> values, double least) {
  if (values.size() < kValuesMin || values.size() > kValuesMax) return 0;
  double greatest = 0;
  for (const T value : values) {
    greatest = std::max(greatest, std::abs(static_cast<double>(value)));
  }
  const double tolerance =
      kRoundingUlps * greatest * static_cast<double>(std::numeric_limits<T>::epsilon());
  const double floor = std::max(least, kToleranceMin * tolerance);
  // Early exit for most chunks: two values are closer to each other than any useful quantum.
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double d = std::abs(static_cast<double>(values[i]) - static_cast<double>(values[i - 1]));
    if (d > tolerance && d < floor - tolerance) return 0;
  }
  std::sort(values.begin(), values.end());
  std::array<double, kValuesMax> gaps;
  std::size_t n_gaps = 0;
  for (std::size_t i = 1; i < values.size(); ++i) {
    const double gap = static_cast<double>(values[i]) - static_cast<double>(values[i - 1]);
    if (gap > tolerance) gaps[n_gaps++] = gap;
  }
  if (n_gaps == 0) return 0;
  std::sort(gaps.begin(), gaps.begin() + static_cast<std::ptrdiff_t>(n_gaps));
  for (int parts = 1; parts <= kPartsMax; ++parts) {
    const double quantum = gaps[0] / parts;
    if (quantum < floor) return 0;
    const double sharp = sharpened<T>(values, std::span(gaps).first(n_gaps), quantum, tolerance);
    if (sharp > 0) return sharp;
  }
  return 0;
}

template double find_quantum(std::span<float>, double);
template double find_quantum(std::span<double>, double);

namespace {

constexpr std::size_t kValuesPerRun = 4096;  // One run of 32 for each of these: 0.8 %.
/// Penalty in bits per value for predictions without a pyramid. Where nearly all codes are zero, a
/// pyramid spends its few bits on coarse levels.
constexpr double kFlatPenalty = 0.03;
constexpr double kPatchNeighbourBits = 6;
/// Minimum ratio of a useful quantum to the step that the bound allows.
constexpr double kQuantumOverStep = 1.1;
/// Poorly predicted values at each end of a row that is joined to the next, for a row of one axis
/// and of two.
constexpr double kJumpsOfRow = 12;
constexpr double kJumpsOfPlane = 1;
/// Additional bits of interpolation where special values lie among ordinary ones, as a fraction.
constexpr double kMixedPenalty = 0.06;
/// Minimum gain, in bits per value, of another folding over the chunk's own extents.
constexpr double kFoldingPenalty = 0.005;

/// Minimum numbers of values seen, and of occurrences among them, for a fill value.
constexpr std::size_t kFillSeenMin = 32;
constexpr std::size_t kFillCountMin = 4;
constexpr std::size_t kFillParts = 64;
/// Minimum distance of a fill value from all other values, in steps and as a part of their range.
/// Zeros next to fractions from 0.15 on are better predicted than masked.
constexpr double kFillGapSteps = 64;
constexpr double kFillGapParts = 2;

/// Find a fill value: the least or the greatest value seen, if it is frequent and far from the
/// others.
template <class T>
bool find_fill(const FirstLook<T>& look, double step, bool rough, T* fill, double* fill_steps) {
  const std::span seen(look.seen.data(), look.n_seen);
  if (seen.size() < kFillSeenMin) return false;
  // Four occurrences would be too many for a rough look: equal values often occur in runs.
  const std::size_t n_least = seen.size() / kFillParts + (rough ? 1 : kFillCountMin);
  const auto [least, greatest] = std::minmax_element(seen.begin(), seen.end());
  for (const T end : {*least, *greatest}) {
    const auto n_equal = static_cast<std::size_t>(std::count(seen.begin(), seen.end(), end));
    if (n_equal < n_least || n_equal == seen.size()) continue;
    double nearest = std::numeric_limits<double>::infinity();
    double farthest = 0;
    for (const T value : seen) {
      if (value == end) continue;
      const double distance = std::abs(static_cast<double>(value) - static_cast<double>(end));
      nearest = std::min(nearest, distance);
      farthest = std::max(farthest, distance);
    }
    if (nearest > kFillGapSteps * step && nearest > (farthest - nearest) / kFillGapParts) {
      *fill = end;
      *fill_steps = nearest / step;
      return true;
    }
  }
  return false;
}

/// Like find_fill(), but confirms a find in a rough look by a full one, so that the result equals
/// encode()'s.
template <class T>
bool find_fill_in_all(SampledValues<T> chunk, const Extents& extents, const FirstLook<T>& look,
                      T* fill, double* fill_steps) {
  const bool rough = chunk.runs_max < kRunsMax;
  if (!find_fill(look, chunk.step, rough, fill, fill_steps)) return false;
  if (!rough) return true;
  chunk.runs_max = kRunsMax;
  return find_fill(Sampler<T>(chunk, extents, kValuesPerRun).look(), chunk.step, false, fill,
                   fill_steps);
}

template <class T>
T rounded_down(double bound) {
  const T nearest = static_cast<T>(bound);
  return static_cast<double>(nearest) > bound ? std::nextafter(nearest, T(0)) : nearest;
}

/// Best spline of an axis (0 = x), or the requested one.
RowSpline best_spline(const Costs& costs, std::size_t axis, Spline wanted, double* cost) {
  static constexpr std::size_t firsts[3] = {linear_x, linear_y, linear_z};
  const std::size_t first = firsts[axis];
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

/// Factor by which codes along an axis grow from one level to the next coarser one.
double growth_along(const Costs& costs, std::size_t axis) {
  const RunCosts& table = RunCosts::table();
  constexpr double least = 1e-4;
  static constexpr std::size_t kFarOf[3] = {coarse_x, far_y, far_z};
  static constexpr std::size_t kNearOf[3] = {cubic_x, linear_y, linear_z};
  const double far = std::max(table.mean_of(costs[kFarOf[axis]]), least);
  const double near = std::max(table.mean_of(costs[kNearOf[axis]]), least);
  double growth = far / near;
  // Distances 1 and 3 are log2(3) levels apart: about the power 5/8.
  if (axis != 0) growth = std::sqrt(growth) * std::sqrt(std::sqrt(std::sqrt(growth)));
  return std::clamp(growth, 1.0, 16.0);
}

/// Bits per value of all levels. The finest level's new points are a share `covered` of all points
/// and cost `finest` each; codes grow by `growth` per level.
double over_levels(double finest, double covered, double growth) {
  const RunCosts& table = RunCosts::table();
  double mean = table.mean_of(finest);
  double total = covered * finest;
  double left = 1 - covered;
  for (int level = 1; left > 0.001 && level < 16; ++level) {
    mean = std::min(mean * growth, 0x1p20);
    total += left * covered * table.of_mean(mean);
    left *= 1 - covered;
  }
  return total / (1 - left);
}

/// Share of the positions along an axis that the finest level adds: the odd ones.
double odd_share(std::size_t extent) {
  const std::size_t n_odd = extent / 2;
  return static_cast<double>(n_odd) / static_cast<double>(extent);
}

/// Cost of interpolation with the last pass along `last`. That pass predicts the odd half of all
/// points along `last`, the pass before half of the rest along another axis, and so on.
Prediction interpolation_of(const Costs& costs, const Extents& extents, int last,
                            const Settings& settings) {
  Prediction prediction;
  prediction.interpolated = true;
  prediction.extents = extents;
  prediction.plan.last_axis = last;
  std::array<double, 3> cost{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    prediction.plan.spline[axis] = best_spline(costs, axis, settings.spline, &cost[axis]);
  }
  // Axes of the passes, last pass first: by last_axis x y z, y x z, z y x.
  static constexpr std::size_t kPasses[3][3] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}};
  double total = 0;
  double growth = 0;
  double left = 1;
  for (const std::size_t axis : kPasses[last]) {
    const double share = left * odd_share(extents[3 - axis]);
    if (share == 0) continue;
    total += share * cost[axis];
    growth += share * growth_along(costs, axis);
    left -= share;
  }
  const double covered = 1 - left;
  if (covered == 0) return prediction;
  prediction.bits_per_value = over_levels(total / covered, covered, growth / covered);
  return prediction;
}

/// Weights of the axes in joint predictions, from the cost of each axis.
void choose_weights(const std::array<double, 3>& cost, const Extents& extents,
                    std::array<std::uint8_t, 3>& weights) {
  double least = kNoCost;
  for (std::size_t axis = 0; axis < 3; ++axis) {
    if (extents[3 - axis] > 1) least = std::min(least, cost[axis]);
  }
  for (std::size_t axis = 0; axis < 3; ++axis) {
    // One more bit means twice the error, and a quarter of the weight if errors are independent.
    double weight = 15;
    for (double worse = cost[axis] - least; worse > 0.125 && weight > 0.5; worse -= 0.25) {
      weight *= 0.72;
    }
    const auto rounded = static_cast<std::uint8_t>(weight);
    weights[axis] = static_cast<std::uint8_t>(rounded + (weight - rounded >= 0.5 ? 1 : 0));
  }
}

/// Cost of joint prediction. On each level, points odd along one axis are predicted along it, and
/// points odd along several by the mean of the predictions along them. The sample measures the mean
/// with equal weights; weights by accuracy are never worse than the best axis.
Prediction joint_of(const Costs& costs, const Extents& extents, const Settings& settings) {
  Prediction prediction;
  prediction.interpolated = true;
  prediction.extents = extents;
  prediction.plan.last_axis = kJoint;
  std::array<double, 3> cost{};
  std::array<double, 3> odd{};
  std::array<double, 3> growth{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    prediction.plan.spline[axis] = best_spline(costs, axis, settings.spline, &cost[axis]);
    odd[axis] = odd_share(extents[3 - axis]);
    if (odd[axis] > 0) growth[axis] = growth_along(costs, axis);
  }
  choose_weights(cost, extents, prediction.plan.axis_weight);
  const double xy = std::min({costs[joint_xy], cost[0], cost[1]});
  const double xz = std::min({costs[joint_xz], cost[0], cost[2]});
  const double yz = std::min({costs[joint_yz], cost[1], cost[2]});
  const double of_set[8] = {0,       cost[0], cost[1], xy,
                            cost[2], xz,      yz,      std::min({costs[joint_xyz], xy, xz, yz})};
  double total = 0;
  double covered = 0;
  double grown = 0;
  for (unsigned set = 1; set < 8; ++set) {
    double share = 1;
    double least_growth = 16;
    for (unsigned axis = 0; axis < 3; ++axis) {
      const bool along = (set >> axis & 1U) != 0;
      share *= along ? odd[axis] : 1 - odd[axis];
      if (along) least_growth = std::min(least_growth, growth[axis]);
    }
    if (share == 0) continue;
    total += share * of_set[set];
    grown += share * least_growth;
    covered += share;
  }
  if (covered == 0) return prediction;
  prediction.bits_per_value = over_levels(total / covered, covered, grown / covered);
  return prediction;
}

/// Choose smaller steps for coarse levels where codes are nearly all zero: coarse values predict
/// many others. The table has the best values over all data sets at rel 1e-2 to 1e-4.
void choose_level_steps(Prediction& prediction) {
  InterpolationPlan& plan = prediction.plan;
  const double bits = prediction.bits_per_value;
  if (bits < 0.2) {
    plan.alpha_16 = 18;
    plan.beta_16 = 96;
  } else if (bits < 0.8) {
    plan.alpha_16 = 20;
    plan.beta_16 = 64;
  } else if (bits < 1.2) {
    plan.alpha_16 = 18;
    plan.beta_16 = 48;
  }
}

/// Derive the costs for extents {z, y x} from a sample of {z, y, x}.
Costs costs_without_y(const Costs& costs) {
  Costs flat;
  flat.fill(kNoCost);
  std::copy_n(costs.begin(), static_cast<std::size_t>(lorenzo2), flat.begin());
  flat[lorenzo2] = costs[lorenzo2_xz];
  for (std::size_t k = 0; k < 3; ++k) flat[linear_y + k] = costs[linear_z + k];
  flat[far_y] = costs[far_z];
  flat[joint_xy] = costs[joint_xz];
  return flat;
}

/// Correct the entropy of a sample, by a fit to real fields at five bounds. Codes are not exactly
/// geometric. Where they are nearly all zero, the coarse levels and the groups have more weight.
double calibrated(const Prediction& prediction) {
  const double bits = prediction.bits_per_value;
  if (!prediction.interpolated) {
    return bits * (1 - (prediction.order == 0 ? 0.4 : 0.08) * bits / (1 + bits * bits));
  }
  double joint = 0;
  if (prediction.plan.last_axis == kJoint) {
    joint = 0.14 / (1 + bits * bits);
    // Joint prediction gains little if one axis dominates; then it is slightly worse than taking
    // that axis last.
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if (prediction.extents[3 - axis] > 1 && prediction.plan.axis_weight[axis] == 0) joint += 0.05;
    }
  }
  return bits * (1 + 0.25 / (1 + 4 * bits * bits)) * (1 + joint);
}

/// Additional bits per value if rows of `length` are joined to longer ones, with `n_jumps` poorly
/// predicted values per row.
double joining_cost(const Costs& costs, std::size_t length, double n_jumps) {
  return n_jumps * std::max(costs[unpredicted] - costs[linear_x], 0.0) /
         static_cast<double>(length);
}

/// True if the chunk may be predicted with other extents than its own: the user has not set axes.
bool may_fold(const Settings& settings) {
  return settings.dimensions == 0 && settings.last_axis < 0;
}

/// Collects the candidates of a chunk.
class Candidates {
 public:
  Candidates(const Settings& settings, double mixed_share, Sampled& sampled)
      : settings_(settings), sampled_(sampled), mixed_share_(mixed_share) {
    const Predictor wanted = settings.predictor;
    const bool any = wanted == Predictor::automatic;
    none_ = any || wanted == Predictor::none;
    lorenzo_ = any || wanted == Predictor::lorenzo;
    interpolation_ = wanted == Predictor::interpolation || (any && settings.preset != Preset::fast);
  }

  /// Add all candidates that a sample has costs for.
  void add(const Costs& costs, const Extents& extents, double penalty) {
    add_pointwise(costs, extents, penalty);
    add_interpolations(costs, extents, penalty);
  }

  /// Add the candidates that predict quantised values: Lorenzo, and no prediction.
  void add_pointwise(const Costs& costs, const Extents& extents, double penalty) {
    if (none_) put({false, 0, {}, extents, 0, costs[unpredicted]}, penalty + kFlatPenalty);
    static constexpr std::size_t kOfOrder[5] = {unpredicted, lorenzo1, lorenzo2, lorenzo3,
                                                lorenzo4};
    for (int order = 1; lorenzo_ && order <= 4; ++order) {
      if (settings_.dimensions != 0 && settings_.dimensions != order) continue;
      Prediction prediction{false,   order, {},
                            extents, 0,     costs[kOfOrder[static_cast<std::size_t>(order)]]};
      // The last value of the previous row predicts a row's first value better than nothing.
      if (order == 1 && may_fold(settings_)) {
        prediction.extents = {1, 1, 1, extents[0] * extents[1] * extents[2] * extents[3]};
      }
      // Order along an axis of one point adds nothing, but the chunk must record a requested
      // dimension.
      const bool flat = order > 1 && extents[static_cast<std::size_t>(4 - order)] == 1;
      if (flat && settings_.dimensions != order) continue;
      put(prediction, penalty + kFlatPenalty);
    }
  }

  void add_interpolations(const Costs& costs, const Extents& extents, double penalty) {
    if (!interpolation_ || step_ != 0) return;
    const Extents folded{1, extents[0] * extents[1], extents[2], extents[3]};
    const int last_axis = settings_.last_axis;
    const bool several_axes = folded[2] > 1;
    if (several_axes && (last_axis < 0 || last_axis == kJoint)) {
      put(joint_of(costs, folded, settings_), penalty);
    }
    bool any = several_axes && last_axis == kJoint;
    for (int last = 0; last < 3; ++last) {
      const bool flat = last > 0 && folded[static_cast<std::size_t>(3 - last)] == 1;
      if (flat || (last_axis >= 0 && last_axis != last)) continue;
      put(interpolation_of(costs, folded, last, settings_), penalty);
      any = true;
    }
    if (!any) put(interpolation_of(costs, folded, 0, settings_), penalty);
  }

  /// Sort the candidates by cost, and complete their plans.
  void finish() {
    const auto begin = sampled_.predictions.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(sampled_.n_predictions);
    // Insertion sort: stable, and without the memory that std::stable_sort allocates.
    const auto less = [](const Prediction& a, const Prediction& b) {
      return a.bits_per_value < b.bits_per_value;
    };
    for (auto p = begin; p != end; ++p) std::rotate(std::upper_bound(begin, p, *p, less), p, p + 1);
    for (auto p = begin; p != end; ++p) {
      if (p->interpolated) choose_level_steps(*p);
    }
  }

  /// Set the lattice of the candidates added next. `step` is 0 for the bound's step; otherwise
  /// interpolation is left out. `patch_bits` is the size of a patch.
  void set_lattice(double step, double misfit_share, double patch_bits) {
    step_ = step;
    misfit_share_ = misfit_share;
    patch_bits_ = patch_bits;
  }

 private:
  void put(Prediction prediction, double penalty) {
    if (sampled_.n_predictions == kPredictionsMax) return;
    prediction.step = step_;
    prediction.bits_per_value = calibrated(prediction) + penalty;
    if (prediction.interpolated) prediction.bits_per_value *= 1 + kMixedPenalty * mixed_share_;
    // A patch costs its value, and larger codes of all neighbours that it helps to predict.
    if (!prediction.interpolated) {
      prediction.bits_per_value +=
          misfit_share_ * (patch_bits_ + kPatchNeighbourBits * (1 << prediction.order));
    }
    sampled_.predictions[sampled_.n_predictions++] = prediction;
  }

  const Settings& settings_;
  Sampled& sampled_;
  bool none_ = false;
  bool lorenzo_ = false;
  bool interpolation_ = false;
  double step_ = 0;
  double misfit_share_ = 0;
  double mixed_share_ = 0;
  double patch_bits_ = 0;
};

/// Add all candidates from one sample: for its extents, and for extents with axes folded together.
void add_with_foldings(const Costs& costs, const Extents& e, double penalty,
                       Candidates& candidates) {
  candidates.add(costs, e, penalty);
  const double folded = penalty + kFoldingPenalty;
  if (e[0] != 1 || e[2] == 1) return;
  candidates.add_interpolations(costs, {1, 1, 1, e[1] * e[2] * e[3]},
                                folded + joining_cost(costs, e[3], kJumpsOfRow));
  if (e[1] == 1) return;
  candidates.add_interpolations(costs, {1, 1, e[1] * e[2], e[3]},
                                folded + joining_cost(costs, e[2], kJumpsOfPlane));
  const double joined = folded + joining_cost(costs, e[3], kJumpsOfPlane);
  const Costs flat = costs_without_y(costs);
  candidates.add_pointwise(flat, {1, 1, e[1], e[2] * e[3]}, folded);
  candidates.add_interpolations(flat, {1, 1, e[1], e[2] * e[3]}, joined);
}

/// Other extents that deserve a sample of their own: four axes folded to three with the slowest one
/// separate, or a single row folded at its period.
template <class T>
Extents folded_extents(const SampledValues<T>& chunk, const Extents& extents, Isa isa) {
  if (extents[0] > 1) return {1, extents[0], extents[1] * extents[2], extents[3]};
  if (extents[1] > 1) return extents;
  const std::size_t period = find_period(chunk, extents, kValuesPerRun, isa);
  if (period == 0) return extents;
  return {1, extents[2], extents[3] / period, period};
}

}  // namespace

template <class T>
Sampled sample_values(SampledValues<T> chunk, const Extents& extents, double bound,
                      const Settings& settings, Isa isa) {
  Sampled sampled;
  chunk.bound = rounded_down<T>(bound);
  chunk.step = 2 * static_cast<double>(chunk.bound) * (1 - 0x1p-10);
  FirstLook<T> seen = Sampler<T>(chunk, extents, kValuesPerRun).look();
  T found{};
  if (chunk.find_fill && chunk.fill == nullptr &&
      find_fill_in_all(chunk, extents, seen, &found, &sampled.fill_steps)) {
    chunk.fill = &found;
    // Ordinary values are fewer now, so take more runs.
    const FirstLook<T> others = Sampler<T>(chunk, extents, kValuesPerRun / 4).look();
    if (others.n_seen > 0) {
      seen = others;
      sampled.has_fill = true;
      sampled.fill = static_cast<double>(found);
    } else {
      chunk.fill = nullptr;
    }
  }
  chunk.offset = static_cast<double>(seen.typical);
  sampled.offset = chunk.offset;
  sampled.special_share = seen.special_share;
  sampled.all_equal = seen.all_equal;
  const Sampler<T> sampler(chunk, extents, kValuesPerRun);
  const LatticeFit fit = sampler.fit();
  sampled.misfit_share = fit.misfit_share;
  sampled.coarse_share = fit.coarse_share;

  Candidates candidates(settings, seen.mixed_share, sampled);
  const Extents folded = may_fold(settings) ? folded_extents(chunk, extents, isa) : extents;
  const auto add_all = [&](double step, const LatticeFit& fits) {
    candidates.set_lattice(step, fits.misfit_share, 8 * sizeof(T) + 6);
    const Costs own = Sampler<T>(chunk, extents, kValuesPerRun).costs(isa);
    if (!may_fold(settings)) {
      candidates.add(own, extents, 0);
      return;
    }
    add_with_foldings(own, extents, 0, candidates);
    if (folded == extents) return;
    const Costs others = Sampler<T>(chunk, folded, kValuesPerRun).costs(isa);
    add_with_foldings(others, folded, kFoldingPenalty, candidates);
  };
  add_all(0, fit);
  const double quantum =
      find_quantum(std::span(seen.seen).first(seen.n_seen), kQuantumOverStep * chunk.step);
  if (quantum > 0) {
    chunk.step = quantum;
    add_all(quantum, Sampler<T>(chunk, extents, kValuesPerRun).fit());
  }
  candidates.finish();
  return sampled;
}

template <class T>
Sampled sample_chunk(const T* values, const Extents& extents, const T* fill, double bound,
                     const Settings& settings, Isa isa) {
  return sample_values(SampledValues<T>{values, fill}, extents, bound, settings, isa);
}

template Sampled sample_values(SampledValues<float>, const Extents&, double, const Settings&, Isa);
template Sampled sample_values(SampledValues<double>, const Extents&, double, const Settings&, Isa);
template Sampled sample_chunk(const float*, const Extents&, const float*, double, const Settings&,
                              Isa);
template Sampled sample_chunk(const double*, const Extents&, const double*, double, const Settings&,
                              Isa);

}  // namespace tailrace::trz
