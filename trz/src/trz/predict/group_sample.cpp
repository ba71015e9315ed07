// Group sample: selection of groups, their values and neighbours, and their codes.

#include "trz/predict/group_sample.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "trz/predict/interpolation.hpp"
#include "trz/predict/sampler.hpp"

namespace tailrace::trz {
namespace {

constexpr std::size_t kReach = 3;  ///< Maximum distance of neighbours along an axis.
constexpr std::size_t kValuesPerGroup = 8192;
constexpr std::size_t kGroupsMin = 48;
constexpr std::size_t kGroupsUsual = 80;
constexpr int kLevelsSampled = 3;  ///< Coarser levels are assumed to be like the last sampled one.
constexpr double kGrowth = 1.5;    ///< Ratio of a coarser level's bits per value to a finer one's.

/// Weights of the near and the far neighbours.
std::array<double, 2> weights_of(RowSpline spline) {
  if (spline == RowSpline::linear) return {0.5, 0};
  return spline == RowSpline::cubic ? std::array{0.5625, -0.0625} : std::array{0.575, -0.075};
}

/// Distance from a value back to the one at a corner of the unit cube; bit 0 is along x.
std::size_t corner_distance(const Extents& extents, std::size_t corner) {
  std::size_t distance = 0;
  std::size_t stride = 1;
  for (std::size_t axis = 0; axis < 4; stride *= extents[3 - axis], ++axis) {
    if ((corner >> axis & 1) != 0) distance += stride;
  }
  return distance;
}

std::size_t groups_for(std::size_t n_values) {
  return std::clamp(n_values / kValuesPerGroup, kGroupsMin, kGroupsUsual);
}

}  // namespace

template <class T>
GroupSample<T>::GroupSample(const SampledValues<T>& chunk, const Prediction& prediction, Isa isa)
    : chunk_(chunk),
      prediction_(prediction),
      kernels_(group_sample_kernels(isa)),
      extents_(prediction.extents) {
  if (prediction.interpolated) {
    extents_ = {1, extents_[0] * extents_[1], extents_[2], extents_[3]};
    sample_interpolation();
  } else {
    sample_lorenzo();
  }
}

/// Compute u of n values that lie `stride` apart. Special values take that of the previous one.
template <class T>
void GroupSample<T>::load(std::size_t first, std::size_t n, std::size_t stride, double* u,
                          bool counted) {
  if (counted) any_special_ = false;
  // Only on the finest level are neighbours also neighbours in the chunk.
  n_seen_ += counted && stride == 1 ? n : 0;
  T buffer[kSourceRunMax];
  const T* from = chunk_.run(first, (n - 1) * stride + 1, buffer);
  const double inverse_step = 1 / chunk_.step;
  const T fill = chunk_.fill == nullptr ? std::numeric_limits<T>::quiet_NaN() : *chunk_.fill;
  bool good = false;
  if constexpr (sizeof(T) == 4) {
    good = kernels_.load_f32(from, n, stride, chunk_.offset, inverse_step, fill, u);
  } else {
    good = kernels_.load_f64(from, n, stride, chunk_.offset, inverse_step, fill, u);
  }
  if (good) return;
  any_special_ = any_special_ || counted;
  double held = 0;
  bool any = false;
  std::size_t n_leading = 0;
  bool was_special = false;
  for (std::size_t i = 0; i < n; ++i) {
    const T value = from[i * stride];
    const bool special = chunk_.special(value);
    if (!special) {
      held = std::clamp((static_cast<double>(value) - chunk_.offset) * inverse_step, -kSampleLimit,
                        kSampleLimit);
      if (!any) n_leading = i;
      any = true;
    }
    u[i] = held;
    if (counted) special_[i] = special;
    n_changes_ += counted && stride == 1 && i > 0 && special != was_special ? 1 : 0;
    was_special = special;
  }
  std::fill_n(u, n_leading, u[n_leading]);
}

// --- Lorenzo, and no prediction ----------------------------------------------------------------

template <class T>
void GroupSample<T>::sample_lorenzo() {
  const std::size_t n_values = extents_[0] * extents_[1] * extents_[2] * extents_[3];
  const std::size_t n_all = (n_values + kGroupCodes - 1) / kGroupCodes;
  n_groups_ = std::min(groups_for(n_values), n_all);
  const auto place = [&](std::size_t k) {
    const std::size_t low = n_all * k / n_groups_;
    const std::size_t high = n_all * (k + 1) / n_groups_;
    const std::size_t start = (low + scatter_.below(high - low)) * kGroupCodes;
    const std::size_t n = std::min(kGroupCodes, n_values - start);
    for (std::size_t corner = 0; corner < std::size_t{1} << prediction_.order; corner += 2) {
      const std::size_t back = corner_distance(extents_, corner);
      if (back <= start) chunk_.prefetch(start - back, n);
    }
    return start;
  };
  std::size_t next = place(0);
  for (std::size_t k = 0; k < n_groups_; ++k) {
    const std::size_t here = next;
    if (k + 1 < n_groups_) next = place(k + 1);
    weight_[k] = static_cast<double>(n_all) / static_cast<double>(n_groups_);
    lorenzo_group(here, codes_.data() + k * kGroupCodes);
  }
}

/// Compute the codes of 64 values from `start` on: sums over all corners of the unit cube with
/// alternating signs. Neighbours outside the chunk count as 0.
template <class T>
void GroupSample<T>::lorenzo_group(std::size_t start, std::int32_t* codes) {
  const std::size_t n_values = extents_[0] * extents_[1] * extents_[2] * extents_[3];
  const std::size_t n = std::min(kGroupCodes, n_values - start);
  const auto order = static_cast<std::size_t>(prediction_.order);
  std::array<std::size_t, 4> stride{1, 0, 0, 0};
  for (std::size_t axis = 1; axis < 4; ++axis) stride[axis] = stride[axis - 1] * extents_[4 - axis];
  double u[kGroupCodes];
  double sum[kGroupCodes] = {};
  for (std::size_t corner = 0; corner < std::size_t{1} << order; ++corner) {
    const std::size_t back = corner_distance(extents_, corner);
    // Positions before the chunk are outside along some axis, too.
    const std::size_t n_before = back > start ? std::min(back - start, n) : 0;
    if (n_before == n) continue;
    load(start + n_before - back, n - n_before, 1, u + n_before, corner == 0);
    kernels_.quantise(u + n_before, n - n_before, 1);
    const double sign = (__builtin_popcountll(corner) & 1) != 0 ? -1 : 1;
    for (std::size_t i = n_before; i < n;) {
      // Row by row, to skip corners outside the chunk.
      const std::size_t x = (start + i) % extents_[3];
      const std::size_t end = std::min(n, i + extents_[3] - x);
      bool outside = false;
      for (std::size_t axis = 1; axis < order; ++axis) {
        outside = outside || ((corner >> axis & 1) != 0 &&
                              (start + i) / stride[axis] % extents_[3 - axis] == 0);
      }
      if ((corner & 1) != 0 && x == 0 && order > 0) ++i;
      for (; i < end; ++i) sum[i] += outside ? 0 : sign * u[i];
    }
  }
  const double none[kGroupCodes] = {};
  std::fill_n(codes, kGroupCodes, 0);
  kernels_.code(sum, none, 1, n, codes);
}

// --- interpolation -----------------------------------------------------------------------------

/// Find the sets of a level, with their numbers of points.
template <class T>
std::size_t GroupSample<T>::sets_of(const Level& level, Set* sets) const {
  const InterpolationPlan& plan = prediction_.plan;
  std::array<double, 3> odd{};
  std::array<double, 3> even{};
  for (std::size_t axis = 0; axis < 3; ++axis) {
    const std::size_t n_odd = level.extent[axis] / 2;
    odd[axis] = static_cast<double>(n_odd);
    even[axis] = static_cast<double>(level.extent[axis]) - odd[axis];
  }
  std::size_t n_sets = 0;
  if (plan.last_axis != kJoint) {
    static constexpr std::size_t kPasses[3][3] = {{0, 1, 2}, {1, 0, 2}, {2, 1, 0}};
    double rest = (odd[0] + even[0]) * (odd[1] + even[1]) * (odd[2] + even[2]);
    for (const std::size_t axis : kPasses[plan.last_axis]) {
      Set set;
      set.axes = 1U << axis;
      set.share[axis] = 1;
      const double part = odd[axis] / (odd[axis] + even[axis]);
      set.n_points = rest * part;
      rest -= set.n_points;
      if (set.n_points > 0) sets[n_sets++] = set;
    }
    return n_sets;
  }
  for (unsigned axes = 1; axes < 8; ++axes) {
    Set set;
    set.axes = axes;
    set.n_points = 1;
    double total = 0;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      const bool along = (axes >> axis & 1U) != 0;
      set.n_points *= along ? odd[axis] : even[axis];
      if (along) total += plan.axis_weight[axis];
    }
    if (set.n_points == 0) continue;
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if ((axes >> axis & 1U) == 0) continue;
      const bool alone = axes == 1U << axis;
      set.share[axis] = alone ? 1 : total == 0 ? 0 : plan.axis_weight[axis] / total;
    }
    sets[n_sets++] = set;
  }
  return n_sets;
}

template <class T>
void GroupSample<T>::sample_interpolation() {
  const Levels levels(extents_);
  const InterpolationPlan& plan = prediction_.plan;
  const int n_sampled = std::min(kLevelsSampled, levels.n_levels - 1);
  if (n_sampled == 0) return sample_lorenzo();
  const auto points_on = [&](int l) { return static_cast<double>(levels.at(l).count()); };
  double total = 0;
  std::array<double, kLevelsSampled> importance{};
  for (int l = 0; l < n_sampled; ++l) {
    importance[static_cast<std::size_t>(l)] =
        (points_on(l) - points_on(l + 1)) * std::pow(kGrowth, l);
    total += importance[static_cast<std::size_t>(l)];
  }
  const auto n_groups = static_cast<double>(groups_for(levels.at(0).count()));
  for (int l = n_sampled - 1; l >= 0; --l) {
    Level level;
    level.index = l;
    level.scale = std::size_t{1} << l;
    level.extent = {levels.at(l).x, levels.at(l).y, levels.at(l).z};
    level.divisor = 1 / level_step(1.0, plan, l);
    level.coarser_divisor = 1 / level_step(1.0, plan, l + 1);
    // The last sampled level represents all coarser ones.
    const double new_points = points_on(l) - points_on(l + 1);
    const double all_points = l == n_sampled - 1 ? points_on(l) : new_points;
    const double n_here = n_groups * importance[static_cast<std::size_t>(l)] / total;
    std::array<Set, 7> sets;
    const std::size_t n_sets = sets_of(level, sets.data());
    for (std::size_t k = 0; k < n_sets; ++k) {
      Set set = sets[k];
      const double n_of_set = n_here * set.n_points / new_points;
      set.n_points *= all_points / new_points;
      sample_set(level, set, static_cast<std::size_t>(std::max(2.0, n_of_set + 0.5)));
    }
  }
}

template <class T>
void GroupSample<T>::sample_set(const Level& level, const Set& set, std::size_t n_groups) {
  n_groups = std::min(n_groups, kGroupsMax - n_groups_);
  if (n_groups == 0) return;
  Place next = scatter(level, set);
  for (std::size_t k = 0; k < n_groups; ++k) {
    const Place here = next;
    if (k + 1 < n_groups) {
      next = scatter(level, set);
      prefetch(level, set, next);
    }
    std::int32_t* codes = codes_.data() + n_groups_ * kGroupCodes;
    weight_[n_groups_++] = set.n_points / static_cast<double>(kGroupCodes * n_groups);
    interpolated_group(level, set, here, codes);
  }
}

template <class T>
typename GroupSample<T>::Place GroupSample<T>::scatter(const Level& level, const Set& set) {
  Place place;
  place.n = kGroupCodes;
  while (place.n > 8 && place.n + 2 * kReach > level.extent[0]) place.n /= 2;
  for (std::size_t axis = 1; axis < 3; ++axis) {
    const std::size_t extent = level.extent[axis];
    std::size_t& at = place.at[axis] = scatter_.below(extent);
    if ((set.axes >> axis & 1U) != 0) at = std::min(at | 1, extent / 2 * 2 - 1);
  }
  const std::size_t needed = place.n + 2 * kReach;
  if (level.extent[0] > needed) {
    place.at[0] = kReach + scatter_.below(level.extent[0] - needed + 1);
  }
  return place;
}

template <class T>
void GroupSample<T>::prefetch(const Level& level, const Set& set, const Place& place) const {
  const auto fetch = [&](std::size_t z, std::size_t y) {
    const std::size_t row = (z * extents_[2] + y) * level.scale;
    chunk_.prefetch(row * extents_[3] + place.at[0] * level.scale, place.n * level.scale);
  };
  fetch(place.at[2], place.at[1]);
  for (const int by : {-3, -1, 1, 3}) {
    if ((set.axes & 2U) != 0) {
      fetch(place.at[2], neighbour(place.at[1], by, level.extent[1]));
    }
    if ((set.axes & 4U) != 0) {
      fetch(neighbour(place.at[2], by, level.extent[2]), place.at[1]);
    }
  }
}

/// Load a row's points on a level from position x on. Positions beyond the ends repeat the end
/// points.
template <class T>
void GroupSample<T>::load_row(const Level& level, std::size_t z, std::size_t y, std::ptrdiff_t x,
                              std::size_t n, double* u, bool counted) {
  const std::size_t first = clamped(x, level.extent[0]);
  const std::size_t last = clamped(x + static_cast<std::ptrdiff_t>(n) - 1, level.extent[0]);
  const std::size_t n_before = x < 0 ? static_cast<std::size_t>(-x) : 0;
  const std::size_t n_inside = std::min(last - first + 1, n - n_before);
  const std::size_t row = (z * extents_[2] + y) * level.scale;
  load(row * extents_[3] + first * level.scale, n_inside, level.scale, u + n_before, counted);
  std::fill_n(u, n_before, u[n_before]);
  std::fill(u + n_before + n_inside, u + n, u[n_before + n_inside - 1]);
}

/// Compute 64 codes of one set, from one row, or from several short ones.
template <class T>
void GroupSample<T>::interpolated_group(const Level& level, const Set& set, Place place,
                                        std::int32_t* codes) {
  const std::size_t n = place.n;
  std::array<std::size_t, 3>& at = place.at;
  const auto x = static_cast<std::ptrdiff_t>(at[0]);
  const bool alone = (set.axes & (set.axes - 1)) == 0 && prediction_.plan.last_axis == kJoint;
  const double divisor = alone ? level.coarser_divisor : level.divisor;
  for (std::size_t done = 0; done < kGroupCodes; done += n) {
    double here[kGroupCodes + 2 * kReach];
    double rows[4][kGroupCodes + 2 * kReach];
    double predicted[kGroupCodes] = {};
    const auto before = static_cast<std::ptrdiff_t>(kReach);
    load_row(level, at[2], at[1], x - before, n + 2 * kReach, here, true);
    double own[kGroupCodes];
    const bool any_special = any_special_;
    bool own_special[kGroupCodes];
    if (any_special) std::copy_n(special_.begin() + kReach, n, own_special);
    std::copy_n(here + kReach, n, own);
    for (std::size_t axis = 0; axis < 3; ++axis) {
      if ((set.axes >> axis & 1U) == 0) continue;
      const auto [near, far] = weights_of(prediction_.plan.spline[axis]);
      const double share = set.share[axis];
      if (axis == 0) {
        kernels_.quantise(here, n + 2 * kReach, divisor);
        kernels_.predict(here, here + 2, here + 4, here + 6, share * near, share * far, n,
                         predicted);
        continue;
      }
      static constexpr int by[4] = {-3, -1, 1, 3};
      for (std::size_t k = 0; k < 4; ++k) {
        if (far == 0 && (k == 0 || k == 3)) {
          std::fill_n(rows[k], n, 0);
          continue;
        }
        std::array<std::size_t, 3> there = at;
        there[axis] = neighbour(at[axis], by[k], level.extent[axis]);
        load_row(level, there[2], there[1], x, n, rows[k]);
        kernels_.quantise(rows[k], n, divisor);
      }
      kernels_.predict(rows[0], rows[1], rows[2], rows[3], share * near, share * far, n, predicted);
    }
    kernels_.code(own, predicted, level.divisor, n, codes + done);
    // Values that become patches get the cheapest code.
    for (std::size_t i = 0; any_special && i < n; ++i) {
      if (own_special[i]) codes[done + i] = 0;
    }
    at[1] = (at[1] + 2) % level.extent[1];
  }
}

template class GroupSample<float>;
template class GroupSample<double>;

}  // namespace tailrace::trz
