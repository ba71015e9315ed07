// Rounding within an absolute bound, so that mantissas end in zeros and neighbours repeat.
//
// Values are rounded to multiples of a power of two, the step S: the largest with S <= 2 bound.
// Rounding to the nearest multiple then errs by at most S/2 <= bound. Every result has few mantissa
// bits, which shuffle and deflate can compress. (A step of exactly 2 bound would give fewer
// distinct values but full mantissas: measured, half the ratio.) Two refinements use the rest of
// the bound, since S may be only slightly above the bound:
//   coarse  prefers a multiple of 2 S within the bound (4 S never differs from it: bound < S),
//   held    repeats the previous value while it is within the bound, which makes runs.
// They reduce accuracy (errors up to the bound rather than S/2) and so must pay: portable.cpp
// measures. Kept bit for bit: NaN, infinities, both zeros, the fill value, values too large for the
// step, and any value that rounding would turn into the fill value. Source: ours; bit grooming
// (Zender 2016) and granular bit rounding also round to few mantissa bits within a bound.

#pragma once

#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

#include "trz/base/error_bound.hpp"

namespace tailrace {

enum class Rounding : std::uint8_t { nearest, coarse, held };

/// Rounds f32 and f64. Immutable; thread-safe.
template <class T>
class Lattice {
 public:
  /// @returns nothing if the bound is too small for any rounding: the values stay unchanged.
  /// @param absolute_bound  > 0, may exceed every value.
  static std::optional<Lattice> within(double absolute_bound) {
    using Limits = std::numeric_limits<T>;
    // The step's magic number, 1.5 * 2^(digits - 1) * S, must stay finite.
    constexpr int exponent_max = Limits::max_exponent - 2 - Limits::digits - 1;
    constexpr int exponent_min = Limits::min_exponent - Limits::digits;
    if (!(absolute_bound > 0)) return std::nullopt;
    // 2^(exponent-1) <= bound < 2^exponent, so S = 2^exponent.
    int exponent = 0;
    std::frexp(absolute_bound, &exponent);
    if (exponent <= exponent_min) return std::nullopt;
    return Lattice(absolute_bound, exponent < exponent_max ? exponent : exponent_max);
  }

  /// Adding and subtracting this number rounds x to a multiple of S (ties to even): the sum has an
  /// ulp of S, and the subtraction is exact. So is x minus the result.
  T magic() const { return magic_; }
  /// Limit of |x| for this rounding. At and above it, x is already a multiple of S/2.
  T reach() const { return reach_; }
  /// The greatest T that does not exceed the bound.
  T bound_below() const { return bound_below_; }
  /// True if |x - y| <= bound, tested exactly.
  bool close(T x, T y) const {
    return !exceeds_bound(static_cast<double>(x), static_cast<double>(y), bound_);
  }
  /// True if a value must stay unchanged: NaN, infinite, zero (either sign).
  static bool special(T x) { return !(std::fabs(x) <= std::numeric_limits<T>::max()) || x == 0; }

 private:
  Lattice(double bound, int exponent)
      : bound_(bound),
        bound_below_(round_down(bound)),
        magic_(std::ldexp(static_cast<T>(1.5), exponent + std::numeric_limits<T>::digits - 1)),
        reach_(std::ldexp(static_cast<T>(1), exponent + std::numeric_limits<T>::digits - 2)) {}

  static T round_down(double bound) {
    constexpr T most = std::numeric_limits<T>::max();
    if (bound >= static_cast<double>(most)) return most;
    const auto rounded = static_cast<T>(bound);
    return static_cast<double>(rounded) > bound ? std::nextafter(rounded, T(0)) : rounded;
  }

  double bound_;
  T bound_below_;
  T magic_;
  T reach_;
};

/// Rounds integers; the bound is rounded down to a whole number first.
template <std::integral T>
class Lattice<T> {
 public:
  static std::optional<Lattice> within(double absolute_bound) {
    if (!(absolute_bound >= 1)) return std::nullopt;
    constexpr double most = static_cast<double>(std::numeric_limits<T>::max()) / 4;
    return Lattice(static_cast<Unsigned>(absolute_bound < most ? absolute_bound : most));
  }

  T nearest(T x) const { return snap(x, step_); }
  T coarse(T x) const {
    const T candidate = snap(x, static_cast<Unsigned>(2 * step_));
    return close(x, candidate) ? candidate : nearest(x);
  }
  bool close(T x, T y) const {
    const auto a = static_cast<Unsigned>(x);
    const auto b = static_cast<Unsigned>(y);
    return static_cast<Unsigned>(x < y ? b - a : a - b) <= bound_;
  }

 private:
  using Unsigned = std::make_unsigned_t<T>;

  explicit Lattice(Unsigned bound) : bound_(bound) {
    while (step_ <= bound_) step_ = static_cast<Unsigned>(2 * step_);
  }

  /// Round to a multiple of a power of two: a word that ends in zeros, in two's complement too. If
  /// the nearest multiple does not fit the type, the value stays.
  static T snap(T x, Unsigned step) {
    const auto half = static_cast<Unsigned>(step / 2);
    const auto mask = static_cast<Unsigned>(~static_cast<Unsigned>(step - 1));
    const auto raised = static_cast<Unsigned>(static_cast<Unsigned>(x) + half);
    const auto candidate = static_cast<T>(static_cast<Unsigned>(raised & mask));
    const bool wrapped = x >= 0 && candidate < 0;
    const bool overflowed = std::is_signed_v<T> ? wrapped : raised < half;
    return overflowed ? x : candidate;
  }

  Unsigned bound_ = 1;
  Unsigned step_ = 1;  // Largest power of two <= 2 bound.
};

// --- Rounding within a pointwise bound: the bound determines the number of mantissa bits.
//
// Dropping d bits of a normal number, rounded to nearest, errs by at most 2^(d-1) of its ulps. With
// 2^(d - digits) <= bound that is at most bound times its magnitude. The refinements apply: coarse
// drops one more bit where that stays within the bound, held repeats the previous value. Also kept
// bit for bit: subnormal numbers, whose spacing soon exceeds the bound, and values that would round
// to infinity. Source: ours; the idea is that of bit grooming (Zender 2016) and of bit rounding
// (Kloewer et al. 2021).

/// Rounds f32 and f64. Immutable; thread-safe.
template <class T>
class MantissaGrid {
 public:
  /// @returns nothing if the bound is too small to drop a bit: the values stay unchanged.
  /// @param pointwise_bound  fraction of a value's magnitude, > 0; above 1/2 it counts as 1/2.
  static std::optional<MantissaGrid> within(double pointwise_bound) {
    if (!(pointwise_bound > 0)) return std::nullopt;
    const double bound = pointwise_bound < 0.5 ? pointwise_bound : 0.5;
    int exponent = 0;
    std::frexp(bound, &exponent);
    const int n_dropped = exponent - 1 + std::numeric_limits<T>::digits;
    if (n_dropped < 1) return std::nullopt;
    return MantissaGrid(n_dropped, bound);
  }

  /// Number of low mantissa bits that rounding sets to 0; 1 to digits - 1.
  int n_dropped() const { return n_dropped_; }
  /// Factor for a sufficient test: |x - y| <= bound_below() * |x|, computed in T, proves the bound
  /// for |x| >= least_sure().
  T bound_below() const { return bound_below_; }
  static T least_sure() { return std::ldexp(T(1), std::numeric_limits<T>::min_exponent / 5 * 4); }
  /// The test with bound_below().
  bool close(T x, T y) const {
    const T size = std::fabs(x);
    const bool sure = size >= least_sure() && size <= std::numeric_limits<T>::max();
    return sure && std::fabs(x - y) <= bound_below_ * size;
  }

 private:
  /// Four ulps exceed the rounding errors of the difference and the product.
  MantissaGrid(int n_dropped, double bound)
      : n_dropped_(n_dropped),
        bound_below_(static_cast<T>(bound) * (1 - 4 * std::numeric_limits<T>::epsilon())) {}

  int n_dropped_;
  T bound_below_;
};

/// Round `n` values in place. Not collective. Thread-safe. Cost: one pass; two for `held`.
/// Defined for all types of DType; on a MantissaGrid for float and double.
/// @param fill  kept, and never produced from another value.
template <class T>
void round_values(const Lattice<T>& lattice, Rounding rounding, std::optional<T> fill, T* values,
                  std::size_t n);
template <class T>
void round_values(const MantissaGrid<T>& grid, Rounding rounding, std::optional<T> fill, T* values,
                  std::size_t n);

}  // namespace tailrace
