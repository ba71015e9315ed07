// Sampling: how large the codes of each predictor would be on a short run of values.
//
// Works in units of the lattice's step: u = (x - offset) / step as doubles, its rounding standing
// in for what the decoder would have at a neighbour. Sums of |code| are integers, so every
// instruction set gives the same. This header may be included by kernel files.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

inline constexpr std::size_t kRunValues = 32;  ///< Values of one run along x.
inline constexpr std::size_t kRunMargin = 8;   ///< Values loaded before and behind it.
inline constexpr std::size_t kRowValues = kRunValues + 2 * kRunMargin;

/// The rows around a run: {0,0} itself, and its neighbours by (dt, dz, dy). Those of fewer axes
/// come first.
enum SampleRow : std::size_t {
  row_here,
  row_y1,  // -1, +1, -3, +3 in y
  row_yp1,
  row_y3,
  row_yp3,
  row_z1,  // the same in z, and -1 in both
  row_zp1,
  row_z3,
  row_zp3,
  row_z1y1,
  row_t1,  // -1 in t: Lorenzo in four dimensions
  row_t1y1,
  row_t1z1,
  row_t1z1y1,
  n_sample_rows
};

/// Rows that a chunk of 0 to 4 axes has.
inline constexpr std::size_t kRowsOfAxes[5] = {1, 1, row_z1, row_t1, n_sample_rows};

/// Candidates: no prediction, Lorenzo of order 1 to 4, interpolation along an axis at distance 1 by
/// spline, and, to tell how coarser levels cost more, along x at distance 2 (cubic) and along the
/// others at distance 3 (linear). Those of fewer axes come first.
enum SampleCandidate : std::size_t {
  unpredicted,
  lorenzo1,
  linear_x,
  cubic_x,
  natural_x,
  coarse_x,
  lorenzo2,
  linear_y,
  cubic_y,
  natural_y,
  far_y,
  joint_xy,
  lorenzo3,
  lorenzo2_xz,  ///< Along x and z alone.
  linear_z,
  cubic_z,
  natural_z,
  far_z,
  joint_xz,
  joint_yz,
  joint_xyz,
  lorenzo4,
  n_sample_candidates
};

/// Candidates that a chunk of 0 to 4 axes has.
inline constexpr std::size_t kCandidatesOfAxes[5] = {lorenzo2, lorenzo2, lorenzo3, lorenzo4,
                                                     n_sample_candidates};

struct SampleKernels {
  /// row[i] = (from[i] - offset) * inverse_step for a whole row of kRowValues values. Returns
  /// false, and the row is not to be used, if a value is too large, not finite, or equals `fill`
  /// (NaN: none is).
  bool (*load_f32)(const float* from, double offset, double inverse_step, float fill, double* row);
  bool (*load_f64)(const double* from, double offset, double inverse_step, double fill,
                   double* row);
  /// rows[r][kRunMargin + i] is u of value i of row r, for i from -margin to run + margin, of all
  /// rows that n_axes axes have. sums[c] becomes the sum of |code| over the run, each clipped to
  /// 2^20, of all candidates that they have.
  void (*measure)(const double (*rows)[kRowValues], std::size_t n_axes, std::uint64_t* sums);
  /// The sum that Lorenzo of order two would have of a row and the row before it.
  std::uint64_t (*sum_of_differences)(const double* row, const double* row_before);
};

inline constexpr double kSampleLimit = 0x1p50;  ///< Greatest |u| that is looked at.

TRZ_DECLARE_KERNELS(SampleKernels, sample_kernels)

// --- Group samples: the arithmetic of group_sample.hpp, compiled for each instruction set.
//
// Works in units of the finest step, as sample_kernels.hpp does. This header may be included by
// kernel files.

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
