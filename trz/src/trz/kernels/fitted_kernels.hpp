// Rows of fitted interpolation: predictions from groups of neighbours, their codes, and what the
// neighbours' codes let expect of the next ones.
//
// A group is the sum of two, four or eight values that lie alike around the point, times one
// weight; the prediction is the sum of the groups in their order. A context is the rounded
// logarithm of a weighted sum of the magnitudes around, in integers. The order of the
// floating-point operations is part of the format (trz/docs/trz-format.md, section 11).
// This header may be included by kernel files.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"
#include "trz/predict/lattice.hpp"

namespace tailrace::trz {

/// Values of a row at a time: what lies between two loops stays in the first-level cache.
inline constexpr std::size_t kFittedPart = 256;
inline constexpr std::size_t kFittedGroups = 10;  ///< Of a point that is odd along three axes.
inline constexpr std::size_t kFittedTaps = 8;     ///< Of a group, at most.

/// What predicts one row.
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

/// Pairs of magnitudes around a point, at most.
inline constexpr std::size_t kNearPairs = 3;
inline constexpr std::size_t kAslantPairs = 6;

/// Where the magnitudes around a row lie, and what each counts.
struct ContextRow {
  const std::uint16_t* near[kNearPairs][2] = {};
  std::size_t n_near = 0;  ///< 1 to 3.
  std::int32_t near_weight = 0;
  const std::uint16_t* aslant[kAslantPairs][2] = {};
  std::size_t n_aslant = 0;  ///< 0, 2, 4 or 6.
  std::int32_t aslant_weight = 0;
  /// Rows of the same class before this one, both or none: three neighbours each, 1 2 1.
  const std::uint16_t* before[2] = {};
  std::int32_t before_weight = 0;
  std::int32_t least = 0;  ///< Of every sum.
};

/// Magnitudes above are taken for this, and sums above for the other: then no sum overflows, and
/// each is exact as an f32, whose exponent is its logarithm.
inline constexpr std::int32_t kMagnitudeMax = 16383;
inline constexpr std::int32_t kContextSumMax = (1 << 24) - 1;
/// Sums are in 1/1024; below 16 all are alike, from there on two contexts an octave.
inline constexpr std::int32_t kContextUnit = 1024;
inline constexpr std::size_t kContexts = 41;

template <class T>
struct FittedRowKernels {
  /// p[i] for i in [begin, begin + n), n <= kFittedPart.
  void (*predict)(const FittedRow<T>& row, std::size_t begin, std::size_t n, T* p);
  /// Codes of n <= kFittedPart values x[2 i] and what the decoder will have, as quantise_carefully:
  /// code 0 and failed[i] = 1 for what is not within the bound, or is the fill value.
  void (*encode)(const T* x, const T* p, std::size_t n, const Lattice<T>& lattice, const T* fill,
                 std::int32_t* codes, T* recon, std::uint8_t* failed);
  void (*decode)(const T* p, const std::int32_t* codes, std::size_t n, T step, T* recon);
  /// to[2 i] = even[i] for n_even values, to[2 i + 1] = odd[i] for n_odd, one less or as many.
  void (*interleave)(const T* even, std::size_t n_even, const T* odd, std::size_t n_odd, T* to);
};

struct FittedKernels {
  FittedRowKernels<float> f32;
  FittedRowKernels<double> f64;
  void (*magnitudes)(const std::int32_t* codes, std::size_t n, std::uint16_t* magnitudes);
  /// Contexts below kContexts of n <= kFittedPart codes.
  void (*contexts)(const ContextRow& row, std::size_t begin, std::size_t n, std::uint8_t* contexts);
  void (*interleave_magnitudes)(const std::uint16_t* even, std::size_t n_even,
                                const std::uint16_t* odd, std::size_t n_odd, std::uint16_t* to);
};

TRZ_DECLARE_KERNELS(FittedKernels, fitted_kernels)

}  // namespace tailrace::trz
