// Sampling: measures the magnitude of each predictor's codes on a short run of values.
//
// The unit is the lattice's step: u = (x - offset) / step, a double. The rounded u approximates the
// decoder's value at a neighbour. Sums of |code| are integers, so all instruction sets give the
// same result. Kernel files may include this header.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"

namespace tailrace::trz {

inline constexpr std::size_t kRunValues = 32;  ///< Values of one run along x.
inline constexpr std::size_t kRunMargin = 8;   ///< Values loaded before and after a run.
inline constexpr std::size_t kRowValues = kRunValues + 2 * kRunMargin;

/// The rows around a run: the run's own row, and its neighbours by (dt, dz, dy). Rows that need
/// fewer axes come first.
enum SampleRow : std::size_t {
  row_here,
  row_y1,  // Offsets -1, +1, -3, +3 in y.
  row_yp1,
  row_y3,
  row_yp3,
  row_z1,  // Offsets -1, +1, -3, +3 in z, and -1 in both.
  row_zp1,
  row_z3,
  row_zp3,
  row_z1y1,
  row_t1,  // Offset -1 in t, for Lorenzo in four dimensions.
  row_t1y1,
  row_t1z1,
  row_t1z1y1,
  n_sample_rows
};

/// Number of rows that a chunk of 0 to 4 axes has.
inline constexpr std::size_t kRowsOfAxes[5] = {1, 1, row_z1, row_t1, n_sample_rows};

/// Candidates for prediction: none, Lorenzo of order 1 to 4, and interpolation along one or more
/// axes at distance 1 by spline. To estimate the higher cost of coarser levels, candidates also
/// interpolate along x at distance 2 (cubic) and along other axes at distance 3 (linear).
/// Candidates that need fewer axes come first.
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
  lorenzo2_xz,  ///< Lorenzo along x and z only.
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

/// Number of candidates that a chunk of 0 to 4 axes has.
inline constexpr std::size_t kCandidatesOfAxes[5] = {lorenzo2, lorenzo2, lorenzo3, lorenzo4,
                                                     n_sample_candidates};

struct SampleKernels {
  /// Compute row[i] = (from[i] - offset) * inverse_step for a complete row of kRowValues values.
  /// Returns false, and the row is invalid, if a value is too large, is not finite, or equals
  /// `fill` (NaN: no fill value).
  bool (*load_f32)(const float* from, double offset, double inverse_step, float fill, double* row);
  bool (*load_f64)(const double* from, double offset, double inverse_step, double fill,
                   double* row);
  /// Measure all candidates of n_axes axes: sums[c] becomes the sum of |code| over the run, with
  /// each |code| clipped to 2^20. rows[r][kRunMargin + i] is u of value i of row r, for i from
  /// -kRunMargin to kRunValues + kRunMargin, for all rows of n_axes axes.
  void (*measure)(const double (*rows)[kRowValues], std::size_t n_axes, std::uint64_t* sums);
  /// Sum of |code| for Lorenzo of order 2, from a row and the previous row.
  std::uint64_t (*sum_of_differences)(const double* row, const double* row_before);
};

inline constexpr double kSampleLimit = 0x1p50;  ///< Limit of |u|; larger values are not sampled.

TRZ_DECLARE_KERNELS(SampleKernels, sample_kernels)

// --- Group samples: the arithmetic of group_sample.hpp, compiled for each instruction set.
//
// The unit is the finest step, as for SampleKernels.

struct GroupSampleKernels {
  /// Compute u[i] = (from[i * stride] - offset) * inverse_step. Returns false, and u is invalid, if
  /// a value is too large, is not finite, or equals `fill` (NaN: no fill value).
  bool (*load_f32)(const float* from, std::size_t n, std::size_t stride, double offset,
                   double inverse_step, float fill, double* u);
  bool (*load_f64)(const double* from, std::size_t n, std::size_t stride, double offset,
                   double inverse_step, double fill, double* u);
  /// Round every u to the nearest multiple of 1 / divisor.
  void (*quantise)(double* u, std::size_t n, double divisor);
  /// Add (b[i] + c[i]) * near + (a[i] + d[i]) * far to predicted[i].
  void (*predict)(const double* a, const double* b, const double* c, const double* d, double near,
                  double far, std::size_t n, double* predicted);
  /// Compute codes[i] = round((u[i] - predicted[i]) * divisor), clipped to 2^30.
  void (*code)(const double* u, const double* predicted, double divisor, std::size_t n,
               std::int32_t* codes);
};

TRZ_DECLARE_KERNELS(GroupSampleKernels, group_sample_kernels)

}  // namespace tailrace::trz
