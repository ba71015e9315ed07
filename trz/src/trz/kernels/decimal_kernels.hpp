// Kernels of decimals: convert floating-point values to whole numbers and back, bit for bit.
//
// A value is number / scale, number * scale or scale / number, plus an offset. These are at most
// three operations in the value's type, each rounded once, in a fixed order. IEEE 754 defines their
// results, so a number that reproduces a value here does so on every machine. The encoder performs
// the decoder's operations and compares all bits.
// Kernel files may include this header.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

/// Kind of map. The numbers are part of the format.
enum class DecimalKind : std::uint8_t { quotient = 0, product = 1, reciprocal = 2 };
inline constexpr std::uint8_t kDecimalKinds = 3;

/// Map from numbers to values: m = number + base; m / scale, m * scale or scale / m; plus offset.
/// The three parameters are finite numbers of the values' type; scale is not 0.
struct DecimalMap {
  DecimalKind kind = DecimalKind::quotient;
  double scale = 1;
  double base = 0;
  double offset = 0;
};

/// One floating-point type's kernels.
template <class T>
struct DecimalKernelsOf {
  /// Compute the numbers of n values. Bit i % 64 of marks[i / 64] is set if number i does not
  /// reproduce value i. Returns true if any bit is set; otherwise `marks` is not written.
  bool (*to_numbers)(const T* values, std::size_t n, const DecimalMap& map, std::int32_t* numbers,
                     std::uint64_t* marks);
  void (*from_numbers)(const std::int32_t* numbers, std::size_t n, const DecimalMap& map,
                       T* values);
  /// Like from_numbers, for numbers that are not whole yet. Each is rounded to the nearest whole
  /// number, ties to even, if its magnitude is below a quarter of 2^24 (f32) or 2^53 (f64). `near`
  /// and `values` may be the same array.
  void (*from_near)(const T* near, std::size_t n, const DecimalMap& map, T* values);
};

struct DecimalKernels {
  DecimalKernelsOf<float> of_f32;
  DecimalKernelsOf<double> of_f64;

  template <class T>
  const DecimalKernelsOf<T>& of() const {
    if constexpr (sizeof(T) == 4) {
      return of_f32;
    } else {
      return of_f64;
    }
  }
};

TRZ_DECLARE_KERNELS(DecimalKernels, decimal_kernels)

}  // namespace tailrace::trz
