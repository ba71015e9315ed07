// The quantisation lattice of one chunk, shared by encoder and decoder.
//
// A lattice value is offset + q * step with a signed 32-bit q. The step is slightly less than twice
// the bound, so that values on odd multiples of the bound do not all fall on a tie. The encoder
// accepts a value only if the decoder's arithmetic reproduces it within the bound: |x - r| < bound
// in the working type, where bound is rounded down to that type. Rounding is monotone, so this
// comparison proves |x - r| <= bound in exact arithmetic. Values that fail it, including NaN and
// Inf, become patches: they are stored exactly, separately from the codes.
// Kernel files may include this header.

#pragma once

namespace tailrace::trz {

template <class T>
struct Lattice {
  T step = 0;
  T inverse_step = 0;
  T bound = 0;   ///< Largest T <= the user's bound.
  T offset = 0;  ///< Typical value of the chunk; keeps q small.
};

/// Constants for q = round(t) without a cast that may overflow: adding 1.5 * 2^23 (2^52) leaves the
/// integer in the low bits. Outside the range the result is an arbitrary int32, which the caller's
/// check with the decoder's arithmetic rejects. Requires round-to-nearest, which FloatEnvironment
/// sets.
inline constexpr float kRoundF32 = 12582912.0F;
inline constexpr double kRoundF64 = 6755399441055744.0;

}  // namespace tailrace::trz
