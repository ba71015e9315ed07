// The transform behind the bound pw_rel: magnitudes to a scale on which a bound is absolute.
//
// A magnitude x = 2^e * m, 1 <= m < 2, becomes y = e + f(m - 1), f(t) = a t / (t + b), b = a - 1 =
// sqrt(2) + 1: nearly the base-2 logarithm, but exactly the same on every machine, since it takes
// + - * / alone. f runs from 0 to 1 and meets itself smoothly at the powers of two; (1 + t) f'(t)
// stays within [sqrt(2), 1.4572], so that bins of one width in y are bins of one relative width in
// x, 3 % give or take. Back: t = f b / (a - f). The y are coded like any field with an absolute
// bound; signs are bits beside them; zeros, NaN, Inf, fill and what is next to the ends of the
// type's range are patches. Layout and order of operations: trz/docs/trz-format.md.
//
// Why the bound holds. Let p be the bound, c = sqrt(1 - p^2), h = sqrt(2) (p + p^3 / 3). y is that
// of c |x|. By the slope above, |y - y'| <= h moves the logarithm of the magnitude by at most
// p + p^3 / 3 <= artanh(p), so that the decoded magnitude lies between c e^-artanh(p) |x| =
// (1 - p) |x| and c e^artanh(p) |x| = (1 + p) |x|. For rounding errors, p is first made smaller by
// what they can come to (PointwisePlan::for_bound). Hence no ordinary value fails; pointwise_check
// proves it again for the values at hand, with the decoder's own operations. Tried: every
// f32 magnitude at both ends of its bin under six bounds, 2.5e10 cases, and 2.1e9 random cases of
// f64 under four: none failed.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "trz/base/dtype.hpp"
#include "trz/entropy/patches.hpp"
#include "trz/kernels/pointwise_kernels.hpp"

namespace tailrace::trz {

/// How a chunk is transformed. The decoder needs `work` alone.
struct PointwisePlan {
  DType work = DType::f32;  ///< Type of the y: f64, or f32 where that is precise enough.
  double y_bound = 0;       ///< |y - decoded y| <= y_bound keeps the pointwise bound.
  double scale = 1;         ///< c: multiplies magnitudes before the map.

  /// A plan for |decoded - original| <= bound * |original|. Bounds above 0.5 are kept as 0.5.
  /// @returns nothing where the transform gains nothing or its 32-bit codes do not reach: another
  /// type than f32 and f64, or a bound below 2^-20 (f32) or 2^-26 (f64). Then round mantissas
  /// (codec/rounding.hpp) and code exactly.
  static std::optional<PointwisePlan> for_bound(DType dtype, double bound);
};

/// Bytes of the sign bits of n values: value i is bit i % 8 of byte i / 8, set if negative.
constexpr std::size_t pointwise_sign_bytes(std::size_t n) { return (n + 7) / 8; }

/// Transform n values. (T, Y): (float, float), (float, double), (double, double), Y that of
/// plan.work. A value that has no ordinary y is marked in `patches` and gets the y of the value
/// before it (at the front: of the first ordinary one behind; 0 if there is none).
/// @param fill  marked wherever it occurs; null for none.
/// @param sign_bits  room for pointwise_sign_bytes(n); bits behind the last value are 0.
/// Not collective. Thread-safe. Cost: one pass.
template <class T, class Y>
void pointwise_forward(const T* values, std::size_t n, const PointwisePlan& plan, const T* fill,
                       Y* y, std::uint8_t* sign_bits, PatchMap& patches, Isa isa);

/// The inverse, all but the patches. Takes any y whatever; `values` may be the memory of `y` where
/// T is Y.
template <class T, class Y>
void pointwise_inverse(const Y* y, const std::uint8_t* sign_bits, std::size_t n, T* values,
                       Isa isa);

/// Mark every value that is not within bound * |value| of its inverse, in exact arithmetic, given
/// the y that a decoder will have. Values marked already are skipped. Cost: one pass.
/// @returns how many were marked.
template <class T, class Y>
std::size_t pointwise_check(const T* values, const Y* decoded_y, const std::uint8_t* sign_bits,
                            std::size_t n, double bound, PatchMap& patches, Isa isa);

}  // namespace tailrace::trz
