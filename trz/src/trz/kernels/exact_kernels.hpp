// Kernels of lossless coding: convert values of any type to integer words and back.
//
// Every value maps to an integer with the same order. Integers map to themselves. Floats are
// converted from sign and magnitude to two's complement, so that trailing zeros of a mantissa stay
// zeros; -0.0 maps to the least integer. Types of up to 32 bits are taken modulo 2^32, others
// modulo 2^64. The word is (integer - origin) / factor. The inverse multiplication cannot fail, so
// any words decode.
// Kernel files may include this header.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

/// Map from integers to words. factor = odd * 2^shift >= 1; inverse * odd = 1 modulo 2^64.
struct WordMap {
  std::uint64_t origin = 0;
  std::uint64_t factor = 1;
  std::uint64_t inverse = 1;
  unsigned shift = 0;
};

/// Common properties of the differences integer - origin of many values.
struct WordRange {
  std::uint64_t ones = 0;  ///< Bits that are set in any difference.
  std::int64_t least = 0;  ///< Least difference; at most 0. `greatest` is at least 0.
  std::int64_t greatest = 0;
};

/// Rows around a row of floats. All have as many values; missing ones are rows of +0.
struct FloatRows {
  const void* above = nullptr;         ///< The row before, along y.
  const void* behind = nullptr;        ///< This row in the plane before, along z.
  const void* behind_above = nullptr;  ///< The row before `behind`.
};

/// One element type's kernels. Arrays of values must be aligned for their type.
struct WordKernels {
  /// Add n values to `range`.
  void (*scan)(const void* values, std::size_t n, std::uint64_t origin, WordRange& range);
  void (*to_words)(const void* values, std::size_t n, const WordMap& map, std::int32_t* words);
  void (*from_words)(const std::int32_t* words, std::size_t n, const WordMap& map, void* values);
  /// Like to_words and from_words, with 64-bit words; null for other than 64-bit types.
  void (*to_wide)(const void* values, std::size_t n, const WordMap& map, std::int64_t* words);
  void (*from_wide)(const std::int64_t* words, std::size_t n, const WordMap& map, void* values);
  /// Find values with these bits: sets bit i % 64 of marks[i / 64] if value i has them. Returns
  /// true if any value has; otherwise `marks` is not written.
  bool (*find)(const void* values, std::size_t n, std::uint64_t bits, std::uint64_t* marks);
  /// Predict a row of n floats from its neighbours in floating point. Code: the value's integer
  /// less the prediction's, modulo the word; an array of int32_t or int64_t, as wide as the type.
  /// Null for integer types.
  void (*difference_floats)(const void* values, const FloatRows& rows, std::size_t n, void* codes);
  /// The inverse of difference_floats.
  void (*sum_floats)(const void* codes, const FloatRows& rows, std::size_t n, void* values);
};

struct ExactKernels {
  WordKernels of_dtype[10];  ///< Kernels in the order of DType.
};

TRZ_DECLARE_KERNELS(ExactKernels, exact_kernels)

}  // namespace tailrace::trz
