// Rows of fitted interpolation: predictions from groups of neighbours, their codes, contexts from
// the codes of neighbours, and the sums of the fits.
//
// A group is the sum of two, four or eight values at symmetric positions around the point, times
// one weight. The prediction is the sum of the groups in their order. A context is the rounded
// logarithm of a weighted sum of the neighbours' magnitudes, in integers. The order of the
// floating-point operations is part of the format (trz/docs/trz-format.md, section 11).
// Kernel files may include this header.
//
// The kernels compute whole vectors. They read up to 60 bytes behind the last neighbour of a row.
// These bytes lie in the grid or in the slack of its area.

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

/// Rows of a grid: the address of row (z, y) is begin + z * stride_z + y * stride_y.
template <class T>
struct GridRows {
  const T* begin = nullptr;
  std::ptrdiff_t stride_y = 0;
  std::ptrdiff_t stride_z = 0;
  const T* row(std::size_t z, std::size_t y) const {
    return begin + static_cast<std::ptrdiff_t>(z) * stride_z +
           static_cast<std::ptrdiff_t>(y) * stride_y;
  }
};

/// Predictor of one row: its groups of neighbours. A class has 2, 5 or 10 groups: two pairs for
/// each axis along which it is odd, then squares, then the cube.
template <class T>
struct FittedRow {
  struct Group {
    GridRows<T> rows;
    const T* here = nullptr;  ///< The row of `rows` that predicts this row.
    std::ptrdiff_t tap[kFittedTaps] = {};
    std::size_t n_taps = 2;  ///< 2, 4 or 8.
    T weight = 0;
  };
  Group groups[kFittedGroups];
  std::size_t n_groups = 0;

  /// Move to row (z, y) of the class.
  void move_to(std::size_t z, std::size_t y) {
    for (std::size_t g = 0; g < n_groups; ++g) groups[g].here = groups[g].rows.row(z, y);
  }
};

/// Most pairs of magnitudes around a point.
inline constexpr std::size_t kNearPairs = 3;
inline constexpr std::size_t kAslantPairs = 6;

/// Pointers to the magnitudes around a row, and their weights.
struct ContextRow {
  struct Pair {
    GridRows<std::uint16_t> rows;
    const std::uint16_t* here = nullptr;
    std::ptrdiff_t shift = 0;  ///< Distance from the pair's first magnitude to its second.
  };
  Pair near[kNearPairs];
  std::size_t n_near = 0;  ///< 1 to 3.
  std::int32_t near_weight = 0;
  Pair aslant[kAslantPairs];
  std::size_t n_aslant = 0;  ///< 0, 2, 4 or 6.
  std::int32_t aslant_weight = 0;
  /// Two earlier rows of the same class, or both null. Each contributes three neighbours with
  /// weights 1, 2, 1.
  const std::uint16_t* before[2] = {};
  GridRows<std::uint16_t> own;
  std::int32_t before_weight = 0;
  std::int32_t least = 0;  ///< Start value of every sum.

  /// Move to row (z, y) of the class.
  void move_to(std::size_t z, std::size_t y) {
    for (std::size_t k = 0; k < n_near; ++k) near[k].here = near[k].rows.row(z, y);
    for (std::size_t k = 0; k < n_aslant; ++k) aslant[k].here = aslant[k].rows.row(z, y);
    const std::uint16_t* row_before = y > 0 ? own.row(z, y - 1) : nullptr;
    const std::uint16_t* plane_before = z > 0 ? own.row(z - 1, y) : nullptr;
    before[0] = row_before != nullptr ? row_before : plane_before;
    before[1] = plane_before != nullptr ? plane_before : row_before;
  }
};

/// Limits to which magnitudes and sums are clamped. With them no sum overflows, and each sum is
/// exact as an f32, whose exponent is the logarithm.
inline constexpr std::int32_t kMagnitudeMax = 16383;
inline constexpr std::int32_t kContextSumMax = (1 << 24) - 1;
/// Unit of sums: 1/1024. Sums below 16 share one context; above there are two contexts per octave.
inline constexpr std::int32_t kContextUnit = 1024;
inline constexpr std::size_t kContexts = 41;

// --- Fits.

inline constexpr std::size_t kFitUnknowns = kFittedGroups - 1;
inline constexpr std::size_t kFitLanes = 8;  ///< Samples per call.
inline constexpr std::size_t kContextUnknowns = 4;

/// Sums of a least-squares fit, in kFitLanes separate parts: then every instruction set adds in the
/// same order.
struct FitSums {
  /// Entries [i][j] with j <= i.
  alignas(64) double product[kFitUnknowns][kFitUnknowns][kFitLanes] = {};
  alignas(64) double target[kFitUnknowns][kFitLanes] = {};
};

/// Points first, first + stride, ... of a row.
struct FitPoints {
  std::size_t first = 0;
  std::size_t stride = 1;
  std::size_t n = 0;  ///< 1 to kFitLanes.
  /// Position of a lane's point; of the first point if the lane has none.
  std::size_t at(std::size_t lane) const { return first + (lane < n ? lane * stride : 0); }
};

/// Parameters of a fit of weights.
template <class T>
struct GroupFit {
  double inverse_step = 1;
  const T* fill = nullptr;          ///< Null: none. The fit skips this value.
  const double* weights = nullptr;  ///< Not null: reduce the share of points they predict badly.
};

template <class T>
struct FittedRowKernels {
  /// Predict the values [begin, begin + n) of a row into p, n <= kFittedPart. p has room for
  /// kFittedPart values.
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
  /// Add points of a row to a fit of its groups' weights. x are the originals of the row, point i
  /// at x[2 i].
  void (*fit)(const FittedRow<T>& row, const T* x, const FitPoints& points, const GroupFit<T>& how,
              FitSums& sums);
};

struct FittedKernels {
  FittedRowKernels<float> f32;
  FittedRowKernels<double> f64;
  void (*magnitudes)(const std::int32_t* codes, std::size_t n, std::uint16_t* magnitudes);
  /// Compute the contexts (below kContexts) of the codes [begin, begin + n), n <= kFittedPart. May
  /// write 15 bytes behind them.
  void (*contexts)(const ContextRow& row, std::size_t begin, std::size_t n, std::uint8_t* contexts);
  void (*interleave_magnitudes)(const std::uint16_t* even, std::size_t n_even,
                                const std::uint16_t* odd, std::size_t n_odd, std::uint16_t* to);
  /// Add points of a row to a fit of the contexts' weights, by relative error. `own` are the
  /// magnitudes of the row.
  void (*fit_contexts)(const ContextRow& row, const std::uint16_t* own, const FitPoints& points,
                       FitSums& sums);
};

TRZ_DECLARE_KERNELS(FittedKernels, fitted_kernels)

}  // namespace tailrace::trz
