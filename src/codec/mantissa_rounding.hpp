// Rounding within a pointwise bound: mantissas keep as many bits as the bound asks for.
//
// Dropping d bits of a normal number with rounding to the nearest errs by at most 2^(d-1) of its
// ulps, so with 2^(d - digits) <= bound by at most bound times its magnitude. The refinements of
// rounding.hpp apply: coarse drops one bit more where that stays within the bound, held repeats the
// value before. Kept bit for bit: NaN, infinities, zeros, subnormal numbers (the bound is smaller
// than their spacing soon), the fill value, values that would round to infinity, and any value that
// rounding would turn into the fill value. Source: ours; the idea is that of bit grooming (Zender
// 2016) and of bit rounding (Kloewer et al. 2021).

#pragma once

#include <cmath>
#include <cstddef>
#include <limits>
#include <optional>

#include "codec/rounding.hpp"

namespace tailrace {

/// Rounds f32 and f64. Immutable; thread-safe.
template <class T>
class MantissaGrid {
 public:
  /// @returns nothing if the bound is too small for dropping a bit: values are to be kept.
  /// @param pointwise_bound  fraction of a value's magnitude, > 0; what exceeds 1/2 counts as 1/2.
  static std::optional<MantissaGrid> within(double pointwise_bound) {
    if (!(pointwise_bound > 0)) return std::nullopt;
    const double bound = pointwise_bound < 0.5 ? pointwise_bound : 0.5;
    int exponent = 0;
    std::frexp(bound, &exponent);
    const int n_dropped = exponent - 1 + std::numeric_limits<T>::digits;
    if (n_dropped < 1) return std::nullopt;
    return MantissaGrid(n_dropped, bound);
  }

  /// Low bits of the mantissa that rounding leaves 0; 1 to digits - 1.
  int n_dropped() const { return n_dropped_; }
  /// |x - y| <= bound_below() * |x| computed in T, for |x| from least_sure() on, proves the bound.
  T bound_below() const { return bound_below_; }
  static T least_sure() { return std::ldexp(T(1), std::numeric_limits<T>::min_exponent / 5 * 4); }
  /// That comparison.
  bool close(T x, T y) const {
    const T size = std::fabs(x);
    const bool sure = size >= least_sure() && size <= std::numeric_limits<T>::max();
    return sure && std::fabs(x - y) <= bound_below_ * size;
  }

 private:
  /// Four ulps are more than the rounding of the difference and the product can come to.
  MantissaGrid(int n_dropped, double bound)
      : n_dropped_(n_dropped),
        bound_below_(static_cast<T>(bound) * (1 - 4 * std::numeric_limits<T>::epsilon())) {}

  int n_dropped_;
  T bound_below_;
};

/// Round `n` values in place. Not collective. Thread-safe. Cost: one pass; two for `held`.
/// Defined for float and double. @param fill  kept, and never produced out of another value.
template <class T>
void round_values(const MantissaGrid<T>& grid, Rounding rounding, std::optional<T> fill, T* values,
                  std::size_t n);

}  // namespace tailrace
