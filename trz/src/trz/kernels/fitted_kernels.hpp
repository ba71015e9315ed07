// Rows of fitted interpolation: predictions from groups of neighbours, their codes, and contexts
// from the codes of neighbours.
//
// A group is the sum of two, four or eight values at symmetric positions around the point, times
// one weight. The prediction is the sum of the groups in their order. A context is the rounded
// logarithm of a weighted sum of the neighbours' magnitudes, in integers. The order of the
// floating-point operations is part of the format (trz/docs/trz-format.md, section 11).
// Kernel files may include this header.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"
#include "trz/predict/lattice.hpp"

namespace tailrace::trz {

/// Most values of a row per call: intermediate results stay in the first-level cache.
inline constexpr std::size_t kFittedPart = 256;
inline constexpr std::size_t kFittedGroups = 10;  ///< Groups of a point odd along three axes.
inline constexpr std::size_t kFittedTaps = 8;     ///< Most values in a group.

/// Predictor of one row: its groups of neighbours.
template <class T>
struct FittedRow {
  struct Group {
    const T* tap[kFittedTaps] = {};
    std::size_t n_taps = 2;  ///< 2, 4 or 8.
    T weight = 0;
  };
  Group groups[kFittedGroups];
  std::size_t n_groups = 0;
};

/// Most pairs of magnitudes around a point.
inline constexpr std::size_t kNearPairs = 3;
inline constexpr std::size_t kAslantPairs = 6;

/// Pointers to the magnitudes around a row, and their weights.
struct ContextRow {
  const std::uint16_t* near[kNearPairs][2] = {};
  std::size_t n_near = 0;  ///< 1 to 3.
  std::int32_t near_weight = 0;
  const std::uint16_t* aslant[kAslantPairs][2] = {};
  std::size_t n_aslant = 0;  ///< 0, 2, 4 or 6.
  std::int32_t aslant_weight = 0;
  /// Two earlier rows of the same class, or both null. Each contributes three neighbours with
  /// weights 1, 2, 1.
  const std::uint16_t* before[2] = {};
  std::int32_t before_weight = 0;
  std::int32_t least = 0;  ///< Start value of every sum.
};

/// Limits to which magnitudes and sums are clamped. With them no sum overflows, and each sum is
/// exact as an f32, whose exponent is the logarithm.
inline constexpr std::int32_t kMagnitudeMax = 16383;
inline constexpr std::int32_t kContextSumMax = (1 << 24) - 1;
/// Unit of sums: 1/1024. Sums below 16 share one context; above there are two contexts per octave.
inline constexpr std::int32_t kContextUnit = 1024;
inline constexpr std::size_t kContexts = 41;

template <class T>
struct FittedRowKernels {
  /// Predict the values [begin, begin + n) of a row into p, n <= kFittedPart.
  void (*predict)(const FittedRow<T>& row, std::size_t begin, std::size_t n, T* p);
  /// Compute codes of n <= kFittedPart values x[2 i] and the decoder's values, like
  /// quantise_carefully. A value that is not within the bound, or is the fill value, has code 0 and
  /// failed[i] = 1.
  void (*encode)(const T* x, const T* p, std::size_t n, const Lattice<T>& lattice, const T* fill,
                 std::int32_t* codes, T* recon, std::uint8_t* failed);
  void (*decode)(const T* p, const std::int32_t* codes, std::size_t n, T step, T* recon);
  /// Interleave: to[2 i] = even[i] for n_even values, to[2 i + 1] = odd[i] for n_odd values. n_odd
  /// is n_even or n_even - 1.
  void (*interleave)(const T* even, std::size_t n_even, const T* odd, std::size_t n_odd, T* to);
};

struct FittedKernels {
  FittedRowKernels<float> f32;
  FittedRowKernels<double> f64;
  void (*magnitudes)(const std::int32_t* codes, std::size_t n, std::uint16_t* magnitudes);
  /// Compute the contexts (below kContexts) of the codes [begin, begin + n), n <= kFittedPart.
  void (*contexts)(const ContextRow& row, std::size_t begin, std::size_t n, std::uint8_t* contexts);
  void (*interleave_magnitudes)(const std::uint16_t* even, std::size_t n_even,
                                const std::uint16_t* odd, std::size_t n_odd, std::uint16_t* to);
};

TRZ_DECLARE_KERNELS(FittedKernels, fitted_kernels)

}  // namespace tailrace::trz
