// Rows of closed-loop interpolation: predict from four rows, quantise, reconstruct, check.
//
// One kernel serves every axis: the four neighbours are four pointers. Along the row itself, they
// point into one row, each shifted by one. prediction = (b + c) * near + (a + d) * far, in this
// order. Edge rows have four weights: (a * wa + d * wd) + (b * wb + c * wc). Then
// q = round((x - p) / step) and r = p + q * step. A value is accepted if |x - r| < bound.
// Kernel files may include this header.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"
#include "trz/predict/lattice.hpp"

namespace tailrace::trz {

/// Weights of one row's prediction. Symmetric unless `edge`.
template <class T>
struct RowWeights {
  bool edge = false;
  T near = 0;         ///< Weight of b and c.
  T far = 0;          ///< Weight of a and d.
  T inverse_far = 0;  ///< 1 / far, or 0 if far is 0.
  T four[4] = {0, 0, 0, 0};
};

/// Destination of the reconstructed values r: discarded, recon[i], or interleaved with b
/// (recon[2 i] = b[i], recon[2 i + 1] = r[i]).
enum class Reconstruct : std::uint8_t { discard, plain, interleave };

/// One row to encode or decode.
template <class T>
struct InterpolationRow {
  const T* x = nullptr;    ///< Original values: x[i * stride]; encoder only.
  std::size_t stride = 1;  ///< 1 or 2.
  const T* a = nullptr;
  const T* b = nullptr;
  const T* c = nullptr;
  const T* d = nullptr;
  T* recon = nullptr;
  Reconstruct where = Reconstruct::plain;
  std::size_t n = 0;
};

/// Rows predicted along several axes at once. The prediction is the sum of the axes' predictions,
/// whose weights the caller has scaled to sum to one. Row r of n_rows lies r pitches after the
/// first, and its codes r * n after those of the first row.
template <class T>
struct JointRows {
  const T* x = nullptr;  ///< Original values x[2 i]; encoder only.
  std::size_t x_pitch = 0;
  struct Axis {
    const T* a = nullptr;
    const T* b = nullptr;
    const T* c = nullptr;
    const T* d = nullptr;
    std::size_t pitch = 0;
    RowWeights<T> weights;
  };
  Axis axes[3];
  int n_axes = 1;
  bool edge = false;   ///< All axes use four weights, since one of them needs them.
  T* recon = nullptr;  ///< Reconstructed values, or null.
  std::size_t recon_pitch = 0;
  T* full = nullptr;  ///< Rows with b of axis 0 at full[2 i], values at full[2 i + 1]; or null.
  std::size_t full_pitch = 0;
  std::size_t n = 0;  ///< Values of a row.
  std::size_t n_rows = 1;
  /// Prefetch distance: elements from a row of x (encoder) or full (decoder) to the data needed one
  /// plane later. Rows lie too far apart for the hardware prefetcher.
  std::ptrdiff_t ahead = 0;
};

template <class T>
struct JointRowKernels {
  /// Like the kernels of InterpolationRowKernels, for n_rows * n codes.
  bool (*encode)(const JointRows<T>& rows, const Lattice<T>& lattice, const T* fill,
                 std::int32_t* codes);
  void (*encode_careful)(const JointRows<T>& rows, const Lattice<T>& lattice, const T* fill,
                         std::int32_t* codes, std::uint8_t* failed);
  void (*decode)(const JointRows<T>& rows, T step, const std::int32_t* codes);
};

template <class T>
struct InterpolationRowKernels {
  /// Encode a row: compute all its codes. Values equal to `fill` (null: no fill value) fail.
  /// Returns false if any value fails; codes and recon are then invalid.
  bool (*encode)(const InterpolationRow<T>& row, const RowWeights<T>& weights,
                 const Lattice<T>& lattice, const T* fill, std::int32_t* codes);
  /// Encode a row with failing values: they get code 0 (so r = p) and failed[i] = 1; others 0.
  void (*encode_careful)(const InterpolationRow<T>& row, const RowWeights<T>& weights,
                         const Lattice<T>& lattice, const T* fill, std::int32_t* codes,
                         std::uint8_t* failed);
  void (*decode)(const InterpolationRow<T>& row, const RowWeights<T>& weights, T step,
                 const std::int32_t* codes);
};

struct InterpolationKernels {
  InterpolationRowKernels<float> f32;
  InterpolationRowKernels<double> f64;
};

struct JointKernels {
  JointRowKernels<float> f32;
  JointRowKernels<double> f64;
};

TRZ_DECLARE_KERNELS(InterpolationKernels, interpolation_kernels)
TRZ_DECLARE_KERNELS(JointKernels, joint_kernels)

}  // namespace tailrace::trz
