// Kernels of lossless coding: values of any type to integer words and back.
//
// Every value is an integer in the order of the values: integers as they are, a float as sign and
// magnitude turned into two's complement (so zeros at the end of a mantissa stay zeros), with -0.0
// at the least integer. Types of up to 32 bits are taken modulo 2^32, the others modulo 2^64. The
// word is (integer - origin) / factor; multiplying back cannot fail, so any words decode.
// This header may be included by kernel files.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

/// How integers become words. factor = odd * 2^shift >= 1; inverse * odd = 1 modulo 2^64.
struct WordMap {
  std::uint64_t origin = 0;
  std::uint64_t factor = 1;
  std::uint64_t inverse = 1;
  unsigned shift = 0;
};

/// What the differences integer - origin of many values have in common.
struct WordRange {
  std::uint64_t ones = 0;  ///< Bits that are set in any of them.
  std::int64_t least = 0;  ///< 0 lies between the two.
  std::int64_t greatest = 0;
};

/// One element type's kernels; values are unaligned-safe only as their type is.
struct WordKernels {
  /// Add n values to `range`.
  void (*scan)(const void* values, std::size_t n, std::uint64_t origin, WordRange& range);
  void (*to_words)(const void* values, std::size_t n, const WordMap& map, std::int32_t* words);
  void (*from_words)(const std::int32_t* words, std::size_t n, const WordMap& map, void* values);
  /// 64-bit types only, else null.
  void (*to_wide)(const void* values, std::size_t n, const WordMap& map, std::int64_t* words);
  void (*from_wide)(const std::int64_t* words, std::size_t n, const WordMap& map, void* values);
  /// Bit i % 64 of marks[i / 64] where value i has just these bits; returns whether any has.
  bool (*find)(const void* values, std::size_t n, std::uint64_t bits, std::uint64_t* marks);
};

struct ExactKernels {
  WordKernels of_dtype[10];  ///< In the order of DType.
};

TRZ_DECLARE_KERNELS(ExactKernels, exact_kernels)

}  // namespace tailrace::trz
