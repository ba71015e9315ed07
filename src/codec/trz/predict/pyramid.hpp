// Pyramid: the extents and the memory of the interpolation's levels.

#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "codec/trz/predict/interpolation.hpp"

namespace tailrace::trz {

/// One level's points per axis.
struct LevelExtents {
  std::size_t z = 1, y = 1, x = 1;
  std::size_t count() const { return z * y * x; }
  std::size_t longest() const { return std::max({z, y, x}); }
  LevelExtents coarser() const { return {(z + 1) / 2, (y + 1) / 2, (x + 1) / 2}; }
};

inline constexpr std::size_t kTopExtent = 4;  ///< The top level is at most this wide.

/// Rows of reconstructed values have room for the ghosts of the edges: one value in front, two
/// behind. Long rows begin at multiples of a vector; short ones must not become many times longer.
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

/// A block of rows: plane z and row y start at base + z * plane_stride + y * row_stride. With a
/// ring only every second plane is kept, in `ring` places.
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

/// Values in front of a row's first one, and the distance between rows.
inline std::size_t ghost_room(std::size_t n_x) { return n_x < kShortRow ? 1 : kRowAlignment; }
inline std::size_t padded_row(std::size_t n_x) {
  if (n_x < kShortRow) return n_x + 3;
  return (n_x + kRowAlignment - 1) / kRowAlignment * kRowAlignment + 2 * kRowAlignment;
}

}  // namespace tailrace::trz
