// The quantisation lattice of one chunk, and the two ends of a stream of codes.
//
// A lattice value is offset + q * step with a signed 32-bit q; step is a little less than twice
// the bound, so that values on odd multiples of the bound do not all fall on a tie. The encoder
// accepts a value only if the decoder's own arithmetic brings it back within the bound:
// |x - r| < bound in the working type, where bound is rounded down to that type. Rounding is
// monotone, so that comparison proves |x - r| <= bound in exact arithmetic. Values that fail (NaN
// and Inf fail by themselves) become patches: stored exactly, beside the codes.
// This header may be included by kernel files.

#pragma once

namespace tailrace::trz {

template <class T>
struct Lattice {
  T step = 0;
  T inverse_step = 0;
  T bound = 0;   ///< Largest T <= the user's bound.
  T offset = 0;  ///< Near the chunk's values; keeps q small.
};

/// q = round(t) without a cast that might not fit: adding 1.5 * 2^23 (2^52) leaves the integer in
/// the low bits. Outside the range the result is some int32; the caller's check with the decoder's
/// arithmetic decides. Needs round-to-nearest (FloatEnvironment sees to that).
inline constexpr float kRoundF32 = 12582912.0F;
inline constexpr double kRoundF64 = 6755399441055744.0;

}  // namespace tailrace::trz
