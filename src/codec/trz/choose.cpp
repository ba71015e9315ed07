// Choose: the candidates of a chunk, their costs, and the decision.

#include "codec/trz/choose.hpp"

#include <algorithm>
#include <cmath>

#include "codec/trz/code_cost.hpp"
#include "codec/trz/periods.hpp"
#include "codec/trz/quantum.hpp"
#include "codec/trz/sampler.hpp"

namespace tailrace::trz {
namespace {

constexpr std::size_t kValuesPerRun = 4096;  // One run of 32 for each of these: 0.8 %.
/// Bits a value: where nearly all codes are zero, a pyramid spends its few on coarse levels.
constexpr double kFlatPenalty = 0.01;
/// A quantum is of use if it is so much larger than the step that the bound allows.
constexpr double kQuantumOverStep = 1.1;
/// Bits a value that another folding must gain over the chunk's own extents.
constexpr double kFoldingPenalty = 0.005;

template <class T>
T rounded_down(double bound) {
  const T nearest = static_cast<T>(bound);
  return static_cast<double>(nearest) > bound ? std::nextafter(nearest, T(0)) : nearest;
}

/// Best spline of an axis (0 = x), or the one that the user wants.
RowSpline best_spline(const Costs& costs, std::size_t axis, Spline wanted, double* cost) {
  static constexpr std::size_t firsts[3] = {kLinearX, kLinearY, kLinearZ};
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

/// Cost of interpolation whose last pass goes along `last`: half of all points are predicted along
/// it, a quarter along the next, and so on; coarser levels cost `coarser` more each.
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
  prediction.extents = extents;
  prediction.plan.last_axis = kJoint;
  std::array<double, 3> cost{};
  double least = kNoCost;
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

/// What a sample of {z, y, x} says of {z, y x}.
Costs costs_without_y(const Costs& costs) {
  Costs flat;
  flat.fill(kNoCost);
  std::copy_n(costs.begin(), static_cast<std::size_t>(kLorenzo2), flat.begin());
  flat[kLorenzo2] = costs[kLorenzo2XZ];
  for (std::size_t k = 0; k < 3; ++k) flat[kLinearY + k] = costs[kLinearZ + k];
  flat[kJointXY] = costs[kJointXZ];
  return flat;
}

/// The candidates of a chunk.
class Candidates {
 public:
  Candidates(const Settings& settings, Sampled& sampled) : settings_(settings), sampled_(sampled) {
    const Predictor wanted = settings.predictor;
    const bool any = wanted == Predictor::automatic;
    none_ = any || wanted == Predictor::none;
    lorenzo_ = any || wanted == Predictor::lorenzo;
    interpolation_ = wanted == Predictor::interpolation || (any && settings.preset != Preset::fast);
  }

  /// All that one sample allows.
  void add(const Costs& costs, const Extents& extents, double penalty) {
    add_pointwise(costs, extents, penalty);
    add_interpolations(costs, extents, penalty);
  }

  /// What predicts from the lattice alone.
  void add_pointwise(const Costs& costs, const Extents& extents, double penalty) {
    if (none_) put({false, 0, {}, extents, 0, costs[kNone]}, penalty + kFlatPenalty);
    static constexpr std::size_t of_order[5] = {kNone, kLorenzo1, kLorenzo2, kLorenzo3, kLorenzo4};
    for (int order = 1; lorenzo_ && order <= 4; ++order) {
      if (settings_.dimensions != 0 && settings_.dimensions != order) continue;
      Prediction prediction{false,   order, {},
                            extents, 0,     costs[of_order[static_cast<std::size_t>(order)]]};
      // An axis of one point adds nothing, but what the user wants is what the chunk says.
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

  /// Sort, and complete the plans.
  void finish() {
    const auto begin = sampled_.predictions.begin();
    const auto end = begin + static_cast<std::ptrdiff_t>(sampled_.n_predictions);
    // By insertion: stable, and without the memory that std::stable_sort allocates.
    const auto less = [](const Prediction& a, const Prediction& b) {
      return a.bits_per_value < b.bits_per_value;
    };
    for (auto p = begin; p != end; ++p) std::rotate(std::upper_bound(begin, p, *p, less), p, p + 1);
    for (auto p = begin; p != end; ++p) {
      if (p->interpolated) choose_level_steps(*p);
    }
  }

  /// The lattice of what comes next: its step if it is not the bound's (then for predictions from
  /// the lattice alone), and the bits a value that patches take there.
  void set_lattice(double step, double patch_cost) {
    step_ = step;
    patch_cost_ = patch_cost;
  }

 private:
  void put(Prediction prediction, double penalty) {
    if (sampled_.n_predictions == kPredictionsMax) return;
    prediction.step = step_;
    prediction.bits_per_value += penalty + (prediction.interpolated ? 0 : patch_cost_);
    sampled_.predictions[sampled_.n_predictions++] = prediction;
  }

  const Settings& settings_;
  Sampled& sampled_;
  bool none_ = false;
  bool lorenzo_ = false;
  bool interpolation_ = false;
  double step_ = 0;
  double patch_cost_ = 0;
};

/// Everything that one sample says about extents and about those with axes folded together.
void add_with_foldings(const Costs& costs, const Extents& e, double penalty,
                       Candidates& candidates) {
  candidates.add(costs, e, penalty);
  const double folded = penalty + kFoldingPenalty;
  if (e[0] != 1 || e[2] == 1) return;
  candidates.add_interpolations(costs, {1, 1, 1, e[1] * e[2] * e[3]}, folded);
  if (e[1] == 1) return;
  candidates.add_interpolations(costs, {1, 1, e[1] * e[2], e[3]}, folded);
  candidates.add(costs_without_y(costs), {1, 1, e[1], e[2] * e[3]}, folded);
}

/// Other extents that are worth a sample of their own: four axes as three, the slowest alone, and
/// rows at their period.
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
Sampled sample_chunk(const T* values, const Extents& extents, const T* fill, double bound,
                     const Settings& settings, Isa isa) {
  Sampled sampled;
  SampledValues<T> chunk{values, fill, rounded_down<T>(bound)};
  chunk.step = 2 * static_cast<double>(chunk.bound) * (1 - 0x1p-10);
  FirstLook<T> seen = Sampler<T>(chunk, extents, kValuesPerRun).look();
  chunk.offset = static_cast<double>(seen.typical);
  sampled.offset = chunk.offset;
  sampled.special_share = seen.special_share;
  sampled.all_equal = seen.all_equal;
  const Sampler<T> sampler(chunk, extents, kValuesPerRun);
  const LatticeFit fit = sampler.fit();
  sampled.misfit_share = fit.misfit_share;
  sampled.coarse_share = fit.coarse_share;

  Candidates candidates(settings, sampled);
  const bool may_fold = settings.dimensions == 0 && settings.last_axis < 0;
  const Extents folded = may_fold ? folded_extents(chunk, extents, isa) : extents;
  const auto add_all = [&](double step, const LatticeFit& fits) {
    candidates.set_lattice(step, fits.misfit_share * (8 * sizeof(T) + 6));
    const Costs own = Sampler<T>(chunk, extents, kValuesPerRun).costs(isa);
    if (!may_fold) {
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

template Sampled sample_chunk(const float*, const Extents&, const float*, double, const Settings&,
                              Isa);
template Sampled sample_chunk(const double*, const Extents&, const double*, double, const Settings&,
                              Isa);

}  // namespace tailrace::trz
