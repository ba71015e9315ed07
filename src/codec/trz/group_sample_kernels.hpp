// Group samples: the arithmetic of group_sample.hpp, compiled for each instruction set.
//
// Works in units of the finest step, as sample_kernels.hpp does. This header may be included by
// kernel files.

#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/trz/isa.hpp"

namespace tailrace::trz {

struct GroupSampleKernels {
  /// u[i] = (from[i * stride] - offset) * inverse_step. Returns false, and u is not to be used, if
  /// a value is too large, not finite, or equals `fill` (NaN: none is).
  bool (*load_f32)(const float* from, std::size_t n, std::size_t stride, double offset,
                   double inverse_step, float fill, double* u);
  bool (*load_f64)(const double* from, std::size_t n, std::size_t stride, double offset,
                   double inverse_step, double fill, double* u);
  /// Every u becomes the next multiple of 1 / divisor.
  void (*quantise)(double* u, std::size_t n, double divisor);
  /// predicted[i] += (b[i] + c[i]) * near + (a[i] + d[i]) * far.
  void (*predict)(const double* a, const double* b, const double* c, const double* d, double near,
                  double far, std::size_t n, double* predicted);
  /// codes[i] = round((u[i] - predicted[i]) * divisor), clipped to 2^30.
  void (*code)(const double* u, const double* predicted, double divisor, std::size_t n,
               std::int32_t* codes);
};

TRZ_DECLARE_KERNELS(GroupSampleKernels, group_sample_kernels)

}  // namespace tailrace::trz
