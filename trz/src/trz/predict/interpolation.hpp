// Interpolation in a pyramid of lattices: the predictor with the best ratio on smooth fields.
//
// Level l of the pyramid holds the points whose indices are multiples of 2^l. The top level is at
// most four points wide and is coded value by value. Each finer level doubles the resolution axis
// by axis and predicts every new point from four points along one axis, two on either side.
// Predictions use decoded values (closed loop), so the error of a value is only its quantisation
// error. Values of one pass do not depend on each other, so kernels process complete rows.
//
// Order of a level's passes, by `last_axis` (0 = x, the fastest). The last pass codes half of all
// points, so the last axis should be the smoothest one.
//   last_axis 0: per plane z, new z rows (odd z), new y rows, then odd x of all rows.
//   last_axis 1: per plane z, new z rows (odd z), odd x of even rows, then odd y as complete rows.
//   last_axis 2: even planes as for last_axis 1. Odd planes z = 2 k + 1 are coded as complete
//   planes,
//                directly after even plane 2 k + 4; the remaining ones at the end.
// Source: Zhao et al. 2021 (SZ3's interpolation), closed loop; QoZ for the level-wise bound. The
// row-wise form, ghost values at edges and the order of codes are ours: trz/docs/trz-format.md.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "trz/entropy/code_stream.hpp"
#include "trz/entropy/patches.hpp"
#include "trz/predict/lattice.hpp"
#include "trz/predict/lorenzo.hpp"
#include "trz/workspace.hpp"

namespace tailrace::trz {

inline constexpr int kLevelsMax = 40;  ///< Maximum number of levels; far above that of any chunk.

/// Value of last_axis for joint prediction along all axes: joint_walk.hpp.
inline constexpr int kJoint = 3;

/// Weights of the four neighbours: linear (0 1 1 0)/2, cubic (-1 9 9 -1)/16 or the natural cubic
/// spline's (-3 23 23 -3)/40.
enum class RowSpline : std::uint8_t { linear, cubic, natural };

/// Interpolation parameters of a chunk, stored in its header.
struct InterpolationPlan {
  int last_axis = 0;  ///< 0, 1, 2, or kJoint; axes of one point are ignored.
  std::array<RowSpline, 3> spline = {RowSpline::cubic, RowSpline::cubic,
                                     RowSpline::cubic};  ///< Per axis, x first.
  /// Weights of the axes in joint predictions, x first, 0 to 15; ignored elsewhere.
  std::array<std::uint8_t, 3> axis_weight = {1, 1, 1};
  /// Step of level l is the finest level's divided by min(alpha^l, beta); both in 1/16, >= 16.
  std::uint8_t alpha_16 = 16;
  std::uint8_t beta_16 = 16;
};

/// Encode all values of a chunk with extents {1, z, y, x}. T: float, double.
/// @param lattice  lattice of the finest level; its offset predicts the very first value.
/// @param fill     values equal to it become patches; null for none.
/// Not collective. Thread-safe if each thread has a workspace. Uses Slots pyramid, coarse and rows.
/// @returns false if out of memory.
template <class T>
bool interpolation_encode(const T* values, const Extents& extents, const InterpolationPlan& plan,
                          const Lattice<T>& lattice, const T* fill, CodeWriter& codes,
                          PatchMap& patches, Workspace& workspace);

/// Decode all values but the patches. @returns false if out of memory or the codes failed.
template <class T>
bool interpolation_decode(CodeReader& codes, const Extents& extents, const InterpolationPlan& plan,
                          const Lattice<T>& lattice, T* values, Workspace& workspace);

/// Encode only the new points of the finest level, given those of the next coarser level. Like
/// interpolation_encode() otherwise.
/// @param coarse  decoded values of the coarser level: every second value per axis, row-major.
/// @pre the chunk has more than one level.
template <class T>
bool refinement_encode(const T* values, const Extents& extents, const InterpolationPlan& plan,
                       const Lattice<T>& lattice, const T* fill, const T* coarse, CodeWriter& codes,
                       PatchMap& patches, Workspace& workspace);

/// Decode what refinement_encode() wrote; also copies the values of `coarse` to their positions.
template <class T>
bool refinement_decode(CodeReader& codes, const Extents& extents, const InterpolationPlan& plan,
                       const Lattice<T>& lattice, const T* coarse, T* values, Workspace& workspace);

/// Step of level l under a plan (finest level 0). Exact in every IEEE implementation.
template <class T>
T level_step(T finest_step, const InterpolationPlan& plan, int level);

// --- Pyramid: extents and memory of the interpolation's levels.

/// Number of points of a level along each axis.
struct LevelExtents {
  std::size_t z = 1, y = 1, x = 1;
  std::size_t count() const { return z * y * x; }
  std::size_t longest() const { return std::max({z, y, x}); }
  LevelExtents coarser() const { return {(z + 1) / 2, (y + 1) / 2, (x + 1) / 2}; }
};

inline constexpr std::size_t kTopExtent = 4;  ///< Maximum width of the top level.

/// Rows of reconstructed values include room for ghost values: one in front, two behind. Long rows
/// start at multiples of a vector. Short rows do not, since padding would multiply their length.
inline constexpr std::size_t kRowAlignment = 16;
inline constexpr std::size_t kShortRow = 32;

/// All levels, finest first.
struct Levels {
  std::array<LevelExtents, kLevelsMax> level;
  int n_levels = 0;

  explicit Levels(const Extents& extents) {
    LevelExtents next{extents[1], extents[2], extents[3]};
    for (;;) {
      level[static_cast<std::size_t>(n_levels++)] = next;
      if (next.longest() <= kTopExtent || n_levels == kLevelsMax) break;
      next = next.coarser();
    }
  }
  int top() const { return n_levels - 1; }
  const LevelExtents& at(int l) const { return level[static_cast<std::size_t>(l)]; }
};

/// Extents of a level of fitted interpolation (fitted.cpp): halved along x, y and z, or, if planar,
/// only along x and y.
struct FittedExtents {
  LevelExtents e;
  bool planar = false;
  FittedExtents coarser() const {
    const LevelExtents half = e.coarser();
    return {{planar ? e.z : half.z, half.y, half.x}, planar};
  }
  std::size_t count() const { return e.count(); }
  std::size_t longest_halved() const { return planar ? std::max(e.y, e.x) : e.longest(); }
  /// Position of plane z: its class, with the bits of x and y 0, and its index in the class.
  std::size_t class_of_plane(std::size_t z) const { return planar ? 0 : 4 * (z % 2); }
  std::size_t place_of_plane(std::size_t z) const { return planar ? z : z / 2; }
  /// Plane of this level that is plane z of a class.
  std::size_t plane_of(std::size_t cls, std::size_t z) const {
    return planar ? z : 2 * z + (cls >> 2 & 1U);
  }
};

struct FittedLevels {
  std::array<FittedExtents, kLevelsMax> level;
  int n_levels = 0;

  FittedLevels(const Extents& extents, bool planar) {
    FittedExtents next{{extents[1], extents[2], extents[3]}, planar};
    for (;;) {
      level[static_cast<std::size_t>(n_levels++)] = next;
      if (next.longest_halved() <= kTopExtent || n_levels == kLevelsMax) break;
      next = next.coarser();
    }
  }
  int top() const { return n_levels - 1; }
  const FittedExtents& at(int l) const { return level[static_cast<std::size_t>(l)]; }
};

/// Copy every second point along every axis, or along x and y only. Prefetches explicitly, since
/// rows lie far apart.
template <class T>
void subsample(const T* fine, const LevelExtents& from, T* coarse, bool every_plane = false) {
  constexpr std::size_t line = 64 / sizeof(T);
  const LevelExtents to = from.coarser();
  const std::size_t n_z = every_plane ? from.z : to.z;
  const std::size_t z_stride = every_plane ? 1 : 2;
  for (std::size_t z = 0; z < n_z; ++z) {
    for (std::size_t y = 0; y < to.y; ++y) {
      const T* row = fine + (z_stride * z * from.y + 2 * y) * from.x;
      const std::size_t n_ahead = y + 3 < to.y ? 6 * from.x : 0;
      for (std::size_t x = 0; x < from.x; x += line) __builtin_prefetch(row + n_ahead + x);
      for (std::size_t x = 0; x < to.x; ++x) coarse[x] = row[2 * x];
      coarse += to.x;
    }
  }
}

/// Block of rows: plane z and row y start at base + z * plane_stride + y * row_stride. With a ring
/// it stores only every second plane, in `ring` buffers.
template <class T>
struct Planes {
  T* base = nullptr;
  std::size_t row_stride = 0;
  std::size_t plane_stride = 0;
  std::size_t ring = 0;

  T* row(std::size_t z, std::size_t y) const {
    const std::size_t place = ring == 0 ? z : (z / 2) % ring;
    return base + place * plane_stride + y * row_stride;
  }
};

/// Padding in front of a row's first value, and the distance between rows.
inline std::size_t ghost_room(std::size_t n_x) { return n_x < kShortRow ? 1 : kRowAlignment; }
inline std::size_t padded_row(std::size_t n_x) {
  if (n_x < kShortRow) return n_x + 3;
  return (n_x + kRowAlignment - 1) / kRowAlignment * kRowAlignment + 2 * kRowAlignment;
}

}  // namespace tailrace::trz
