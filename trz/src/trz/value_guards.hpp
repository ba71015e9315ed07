// Guards of single values: a value whose decoded form would break a guard is stored exactly.
// Predictions use a value's code even if it is patched, so patches can be added after all codes are
// made.

#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "trz/base/guards.hpp"
#include "trz/entropy/patches.hpp"

namespace tailrace::trz {

/// Threshold of a guard as comparisons in T, which are exact: x < V if and only if x is below the
/// least T that is not below V, and likewise above.
template <class T>
struct GuardedThreshold {
  T below = 0;  ///< Greatest T <= V.
  T above = 0;  ///< Least T >= V.
  explicit GuardedThreshold(double threshold) {
    constexpr double kGreatest = std::numeric_limits<T>::max();
    constexpr T kInfinity = std::numeric_limits<T>::infinity();
    const T nearest = threshold > kGreatest    ? kInfinity
                      : threshold < -kGreatest ? -kInfinity
                                               : static_cast<T>(threshold);
    const auto back = static_cast<double>(nearest);
    below = back > threshold ? std::nextafter(nearest, -kInfinity) : nearest;
    above = back < threshold ? std::nextafter(nearest, kInfinity) : nearest;
  }
  bool is_near(T x, T reach) const {
    const T from_below = std::fabs(x - below);
    const T from_above = std::fabs(x - above);
    return (from_below <= reach) | (from_above <= reach);
  }
};

inline constexpr std::size_t kGuardBlock = 64;

/// True if an error within the bound could break a guard: some value is close enough to a guarded
/// value, or a guard applies to values everywhere.
template <class T>
bool may_break(const ValueGuards& guards, const T* values, std::size_t n, double bound) {
  if (guards.in_any_place()) return true;
  // Twice the bound covers the rounding of differences.
  const auto reach = static_cast<T>(std::min<double>(2 * bound, std::numeric_limits<T>::max()));
  std::vector<GuardedThreshold<T>> near;
  for (const double threshold : guards.thresholds) near.emplace_back(threshold);
  if (guards.extremes) {
    near.emplace_back(guards.least);
    near.emplace_back(guards.greatest);
  }
  for (std::size_t start = 0; start < n; start += kGuardBlock) {
    const std::size_t end = std::min(n, start + kGuardBlock);
    unsigned found = 0;
    for (const GuardedThreshold<T>& threshold : near) {
      for (std::size_t i = start; i < end; ++i)
        found |= threshold.is_near(values[i], reach) ? 1 : 0;
    }
    for (std::size_t i = start; guards.zeros && i < end; ++i) found |= values[i] == 0 ? 1 : 0;
    if (found != 0) return true;
  }
  return false;
}

/// Mark values of a block whose error is not below their region's bound. Rounding of differences is
/// monotone: an error that exceeds the bound in exact arithmetic is not below it here.
template <class T>
void mark_beyond(const RegionLevels& tighter, std::size_t start, std::size_t n_block, const T* x,
                 const T* y, std::uint8_t* broken) {
  const std::uint8_t* level = tighter.of_value.data() + start;
  unsigned any = 0;
  for (std::size_t i = 0; i < n_block; ++i) any |= level[i];
  for (std::size_t k = 0; any != 0 && k < tighter.bounds.size(); ++k) {
    const double bound = tighter.bounds[k];
    for (std::size_t i = 0; i < n_block; ++i) {
      const bool nearer = std::fabs(static_cast<double>(x[i]) - static_cast<double>(y[i])) < bound;
      const bool beyond = (level[i] == k + 1) & !nearer & (x[i] != y[i]);
      broken[i] |= beyond ? 1 : 0;
    }
  }
}

/// Mark the values whose decoded form would break guards.
/// @param decoded  all values but the patches, as the decoder will compute them.
template <class T>
void mark_broken(const ValueGuards& guards, const T* values, const T* decoded, std::size_t n,
                 PatchMap& patches) {
  std::vector<GuardedThreshold<T>> thresholds;
  for (const double threshold : guards.thresholds) thresholds.emplace_back(threshold);
  const auto least = static_cast<T>(guards.least);
  const auto greatest = static_cast<T>(guards.greatest);
  for (std::size_t start = 0; start < n; start += kGuardBlock) {
    const std::size_t n_block = std::min(kGuardBlock, n - start);
    const T* x = values + start;
    const T* y = decoded + start;
    std::uint8_t broken[kGuardBlock] = {};
    for (const GuardedThreshold<T>& t : thresholds) {
      for (std::size_t i = 0; i < n_block; ++i) {
        const bool crosses =
            ((x[i] < t.above) != (y[i] < t.above)) | ((x[i] > t.below) != (y[i] > t.below));
        broken[i] |= crosses ? 1 : 0;
      }
    }
    for (std::size_t i = 0; guards.zeros && i < n_block; ++i) {
      const bool other = std::bit_cast<BitsOf<T>>(x[i]) != std::bit_cast<BitsOf<T>>(y[i]);
      broken[i] |= ((x[i] == 0) & other) ? 1 : 0;
    }
    for (std::size_t i = 0; guards.extremes && i < n_block; ++i) {
      const bool leaves = (y[i] < least) | (y[i] > greatest);
      const bool moves = ((x[i] == least) | (x[i] == greatest)) & (y[i] != x[i]);
      broken[i] |= (leaves | moves) ? 1 : 0;
    }
    for (const FunctionLimit& limit : guards.functions) {
      for (std::size_t i = 0; i < n_block; ++i) {
        const auto before = static_cast<double>(x[i]);
        const bool moves = std::isfinite(x[i]) && !limit.keeps(before, static_cast<double>(y[i]));
        broken[i] |= moves ? 1 : 0;
      }
    }
    if (!guards.tighter.empty()) mark_beyond(guards.tighter, start, n_block, x, y, broken);
    unsigned any = 0;
    for (std::size_t i = 0; i < n_block; ++i) any |= broken[i];
    for (std::size_t i = 0; any != 0 && i < n_block; ++i) {
      if (broken[i] != 0) patches.mark(start + i);
    }
  }
}

}  // namespace tailrace::trz
