// Sampling: how large the codes of each predictor would be on a short run of values.
//
// Works in units of the lattice's step: u = (x - offset) / step as doubles, its rounding standing
// in for what the decoder would have at a neighbour. Sums of |code| are integers, so every
// instruction set gives the same. This header may be included by kernel files.

#pragma once

#include <cstddef>
#include <cstdint>

#include "codec/trz/isa.hpp"

namespace tailrace::trz {

inline constexpr std::size_t kRunValues = 32;  ///< Values of one run along x.
inline constexpr std::size_t kRunMargin = 8;   ///< Values loaded before and behind it.
inline constexpr std::size_t kRowValues = kRunValues + 2 * kRunMargin;

/// The rows around a run: {0,0} itself, and its neighbours by (dt, dz, dy).
enum SampleRow : std::size_t {
  kRowHere,
  kRowY1,
  kRowZ1,
  kRowZ1Y1,  // -1 in y, z, both: Lorenzo
  kRowYp1,
  kRowY3,
  kRowYp3,
  kRowZp1,
  kRowZ3,
  kRowZp3,  // +1, -3, +3: interpolation
  kRowT1,
  kRowT1Y1,
  kRowT1Z1,
  kRowT1Z1Y1,  // -1 in t: Lorenzo in four dimensions
  n_sample_rows
};

/// Candidates: no prediction, Lorenzo of order 1 to 4, interpolation along an axis at distance 1 by
/// spline, and along x at distance 2 (cubic), which tells how coarser levels cost more.
enum SampleCandidate : std::size_t {
  kNone,
  kLorenzo1,
  kLorenzo2,
  kLorenzo3,
  kLorenzo4,
  kLinearX,
  kCubicX,
  kNaturalX,
  kLinearY,
  kCubicY,
  kNaturalY,
  kLinearZ,
  kCubicZ,
  kNaturalZ,
  kCoarseX,
  kJointXY,
  kJointXZ,
  kJointYZ,
  kJointXYZ,
  n_sample_candidates
};

struct SampleKernels {
  /// rows[r][kRunMargin + i] is u of value i of row r, for i from -margin to run + margin.
  /// sums[c] becomes the sum of |code| over the run, each clipped to 2^20.
  void (*measure)(const double (*rows)[kRowValues], std::uint64_t* sums);
};

TRZ_DECLARE_KERNELS(SampleKernels, sample_kernels)

}  // namespace tailrace::trz
