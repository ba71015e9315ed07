// Kernels of decimals: floating-point values to whole numbers and back, bit for bit.
//
// A value is number / scale, number * scale or scale / number, plus an offset: three operations of
// the value's own type at most, each rounded once, in a written order. IEEE 754 says what each of
// them returns, so a number that brings a value back here brings it back on every machine; the
// encoder does just what the decoder will do and compares all bits.
// This header may be included by kernel files.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

/// The numbers are part of the format.
enum class DecimalKind : std::uint8_t { quotient = 0, product = 1, reciprocal = 2 };
inline constexpr std::uint8_t kDecimalKinds = 3;

/// How numbers become values: m = number + base; m / scale, m * scale or scale / m; plus offset.
/// All three are numbers of the values' type, and finite; scale is not 0.
struct DecimalMap {
  DecimalKind kind = DecimalKind::quotient;
  double scale = 1;
  double base = 0;
  double offset = 0;
};

/// One floating-point type's kernels.
template <class T>
struct DecimalKernelsOf {
  /// The numbers of n values. Bit i % 64 of marks[i / 64] is set where the number does not bring
  /// the value back; returns whether any is, and leaves `marks` alone otherwise.
  bool (*to_numbers)(const T* values, std::size_t n, const DecimalMap& map, std::int32_t* numbers,
                     std::uint64_t* marks);
  void (*from_numbers)(const std::int32_t* numbers, std::size_t n, const DecimalMap& map,
                       T* values);
  /// The same of numbers that are not whole yet: each is rounded to the nearest one, ties to even,
  /// if its magnitude is below a quarter of 2^24 (f32) or 2^53 (f64). In place is fine.
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
