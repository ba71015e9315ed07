// The transform for the bound pw_rel: maps magnitudes to a scale on which the bound is absolute.
//
// A magnitude x = 2^e * m, 1 <= m < 2, becomes y = e + f(m - 1), where f(t) = a t / (t + b) and b =
// a - 1 = sqrt(2) + 1. This is nearly the base-2 logarithm, but uses only + - * / and is therefore
// exactly the same on every machine. f runs from 0 to 1 and is continuous and smooth at the powers
// of two. (1 + t) f'(t) stays within [sqrt(2), 1.4572]: bins of equal width in y have equal
// relative width in x, to about 3 %. Inverse: t = f b / (a - f). The y are coded like any field
// with an absolute bound, and the signs as separate bits. Zeros, NaN, Inf, fill and values next to
// the ends of the type's range are patches. Layout and order of operations: trz/docs/trz-format.md.
//
// Why the bound holds. Let p be the bound, c = sqrt(1 - p^2), h = sqrt(2) (p + p^3 / 3), and let y
// be the transform of c |x|. By the slope above, |y - y'| <= h moves the logarithm of the magnitude
// by at most p + p^3 / 3 <= artanh(p). So the decoded magnitude lies between c e^-artanh(p) |x| =
// (1 - p) |x| and c e^artanh(p) |x| = (1 + p) |x|. To cover rounding errors, p is first reduced by
// their upper bound (PointwisePlan::for_bound). Hence no ordinary value fails. pointwise_check()
// verifies it for the actual values, with the decoder's operations. Tests without a failure: every
// f32 magnitude at both ends of its bin under six bounds (2.5e10 cases), and 2.1e9 random cases of
// f64 under four.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "trz/base/dtype.hpp"
#include "trz/entropy/patches.hpp"
#include "trz/kernels/pointwise_kernels.hpp"

namespace tailrace::trz {

/// Parameters of a chunk's transform. The decoder needs only `work`.
struct PointwisePlan {
  DType work = DType::f32;  ///< Type of the y: f64, or f32 if that is precise enough.
  double y_bound = 0;       ///< |y - decoded y| <= y_bound keeps the pointwise bound.
  double scale = 1;         ///< c: multiplies magnitudes before the map.

  /// Make a plan for |decoded - original| <= bound * |original|. Bounds above 0.5 are treated as
  /// 0.5.
  /// @returns nothing if the transform gains nothing or its 32-bit codes do not suffice: another
  /// type than f32 and f64, or a bound below 2^-20 (f32) or 2^-26 (f64). Then round mantissas
  /// (codec/rounding.hpp) and code exactly.
  static std::optional<PointwisePlan> for_bound(DType dtype, double bound);
};

/// Bytes of the sign bits of n values: value i is bit i % 8 of byte i / 8, set if negative.
constexpr std::size_t pointwise_sign_bytes(std::size_t n) { return (n + 7) / 8; }

/// Transform n values. (T, Y): (float, float), (float, double), (double, double), where Y is the
/// type plan.work. A value without an ordinary y is marked in `patches` and gets the y of the
/// previous value. At the front it gets the y of the first ordinary value, or 0 if no value has
/// one.
/// @param fill  marked wherever it occurs; null for none.
/// @param sign_bits  pointwise_sign_bytes(n) bytes; bits after the last value are set to 0.
/// Not collective. Thread-safe. Cost: one pass.
template <class T, class Y>
void pointwise_forward(const T* values, std::size_t n, const PointwisePlan& plan, const T* fill,
                       Y* y, std::uint8_t* sign_bits, PatchMap& patches, Isa isa);

/// Invert the transform for all values but the patches. Accepts any y; `values` may alias `y` if T
/// is Y.
template <class T, class Y>
void pointwise_inverse(const Y* y, const std::uint8_t* sign_bits, std::size_t n, T* values,
                       Isa isa);

/// Mark every value whose decoded form is not within bound * |value| in exact arithmetic, given the
/// decoder's y. Skips values that are already marked. Cost: one pass.
/// @returns number of values marked.
template <class T, class Y>
std::size_t pointwise_check(const T* values, const Y* decoded_y, const std::uint8_t* sign_bits,
                            std::size_t n, double bound, PatchMap& patches, Isa isa);

}  // namespace tailrace::trz
