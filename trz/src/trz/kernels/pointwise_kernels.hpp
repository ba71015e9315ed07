// The pointwise transform's loops over blocks of 64 values; see pointwise.hpp for what they
// compute.
//
// All take whole blocks and write one 64-bit word of exceptions per block: bit j is value j. They
// return whether any such bit is set. T is the values' type, Y the type of the transformed ones:
// (float, float), (float, double) or (double, double). This header may be included by kernel files.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

inline constexpr std::size_t kPointwiseBlock = 64;

/// What the transform needs besides the values.
template <class T, class Y>
struct PointwiseForward {
  Y scale = 1;  ///< Multiplies every magnitude first; see PointwisePlan.
  T fill = 0;   ///< Exceptional as well; a NaN for none.
};

template <class T, class Y>
struct PointwiseFunctions {
  /// y of every value and 8 bytes of signs per block. Exceptions: what has no ordinary y.
  bool (*forward)(const T* values, std::size_t n_blocks, const PointwiseForward<T, Y>& settings,
                  Y* y, std::uint8_t* sign_bits, std::uint64_t* exceptions);
  /// Any y whatever is harmless. `values` may be the memory of `y` where T is Y.
  void (*inverse)(const Y* y, const std::uint8_t* sign_bits, std::size_t n_blocks, T* values);
  /// Exceptions: values that are not surely within `bound_below` * |value| of their inverse.
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
