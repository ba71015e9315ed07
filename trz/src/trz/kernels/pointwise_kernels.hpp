// The pointwise transform's loops over blocks of 64 values; pointwise.hpp defines the transform.
//
// All functions process complete blocks. forward() and check() write one 64-bit word of exceptions
// per block, with bit j for value j, and return true if any bit is set. T is the type of the
// values, Y that of the transformed values: (float, float), (float, double) or (double, double).
// Kernel files may include this header.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

inline constexpr std::size_t kPointwiseBlock = 64;

/// Parameters of the forward transform.
template <class T, class Y>
struct PointwiseForward {
  Y scale = 1;  ///< Factor of every magnitude before the transform; see PointwisePlan.
  T fill = 0;   ///< Values equal to this are exceptions; NaN: no fill value.
};

template <class T, class Y>
struct PointwiseFunctions {
  /// Compute y of every value, and 8 bytes of signs per block. Exceptions: values without an
  /// ordinary y.
  bool (*forward)(const T* values, std::size_t n_blocks, const PointwiseForward<T, Y>& settings,
                  Y* y, std::uint8_t* sign_bits, std::uint64_t* exceptions);
  /// Compute values from y and signs. Any y is safe. `values` may be the memory of `y` if T is Y.
  void (*inverse)(const Y* y, const std::uint8_t* sign_bits, std::size_t n_blocks, T* values);
  /// Check the inverse of y against the values. Exceptions: values that are not certainly within
  /// `bound_below` * |value| of their inverse.
  bool (*check)(const T* values, const Y* y, std::size_t n_blocks, T bound_below,
                std::uint64_t* exceptions);
};

struct PointwiseKernels {
  PointwiseFunctions<float, float> f32_f32;
  PointwiseFunctions<float, double> f32_f64;
  PointwiseFunctions<double, double> f64_f64;
};

TRZ_DECLARE_KERNELS(PointwiseKernels, pointwise_kernels)

}  // namespace tailrace::trz
