// Shapes, boxes and grids: the N-D integer geometry on which all other code is built.
//
// A Shape is a list of extents, slowest dimension first (C order, as HDF5 and NumPy count). A Box
// is {start, count} inside a shape. A ChunkGrid cuts a shape into equal chunks; the last chunk of a
// dimension may extend past the shape's end. Rank 0 (a scalar) needs no special case: it has one
// box, one chunk and one element. This code allocates only the small vectors, and it depends on
// neither MPI nor HDF5.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "trz/base/dtype.hpp"

namespace tailrace {

/// Extents or positions per dimension, slowest first; at most kMaxRank entries.
using Shape = std::vector<std::uint64_t>;

/// HDF5's limit on the number of dimensions (H5S_MAX_RANK).
inline constexpr std::size_t kMaxRank = 32;

/// Product of the extents; 1 for a scalar, 0 if any extent is 0. Saturates at UINT64_MAX.
std::uint64_t n_elements(const Shape& shape);

/// "128x64x64"; "scalar" for rank 0.
std::string shape_text(const Shape& shape);

/// A rectangular part of a field: `count` elements from `start` in each dimension.
struct Box {
  Shape start;
  Shape count;

  std::size_t rank() const { return start.size(); }
  std::uint64_t n_elements() const { return tailrace::n_elements(count); }
  bool empty() const { return n_elements() == 0; }
  bool operator==(const Box&) const = default;
};

/// "[0:64, 32:64]"; "[]" for a scalar.
std::string box_text(const Box& box);

/// The box that covers a shape.
Box whole_box(const Shape& shape);

/// Intersection of two boxes; its count is 0 in each dimension in which they do not overlap.
Box intersect(const Box& a, const Box& b);

/// True if `inner` lies entirely within `outer` (an empty inner always does).
bool contains(const Box& outer, const Box& inner);

/// Copy the elements of `part` from a dense row-major array that covers `from_box` to one that
/// covers `to_box`. `part` must lie in both boxes. Each contiguous run is one memcpy.
/// Not collective. Thread-safe. Cost: O(elements of part).
void copy_box(const Box& part, const Box& from_box, const std::byte* from, const Box& to_box,
              std::byte* to, std::size_t element_bytes);

/// A shape cut into equal chunks.
struct ChunkGrid {
  Shape shape;        ///< The field's extents.
  Shape chunk_shape;  ///< Extents of every chunk, each >= 1; same rank as shape.

  /// Chunks along each dimension: ceil(shape / chunk_shape).
  Shape n_per_dimension() const;
  /// Number of chunks in the grid; 0 for an empty field, 1 for a scalar.
  std::uint64_t n_chunks() const;
  /// Grid coordinates of the chunk with this row-major index.
  Shape coordinates(std::uint64_t chunk_index) const;
  /// Row-major index of the chunk at these grid coordinates.
  std::uint64_t index_of(const Shape& coordinates) const;
  /// The chunk's box, not cut at the shape's end: every count equals chunk_shape.
  Box full_box(std::uint64_t chunk_index) const;
  /// The chunk's box cut at the shape's end.
  Box clipped_box(std::uint64_t chunk_index) const;
  /// The box of grid coordinates of all chunks that `box` touches; empty if `box` is empty.
  Box touched(const Box& box) const;
};

/// Call `visit(coordinates)` for every position of `box`, row-major.
template <class Visit>
void for_each_position(const Box& box, Visit&& visit) {
  if (box.empty()) return;
  Shape at = box.start;
  while (true) {
    visit(static_cast<const Shape&>(at));
    std::size_t d = at.size();
    while (d > 0) {
      --d;
      if (++at[d] < box.start[d] + box.count[d]) break;
      at[d] = box.start[d];
      if (d == 0) return;
    }
    if (at.empty()) return;
  }
}

// --- Views of values in the application's memory: a sample of 1 % needs no copy of the array.

/// A box of values inside a larger row-major array. Not owned.
struct StridedValues {
  const std::byte* data = nullptr;  ///< The box's first value.
  DType dtype = DType::f32;
  Shape shape;    ///< Extents of the box, slowest first.
  Shape strides;  ///< Elements from one value to the next along each dimension; the last is 1.

  std::uint64_t n_values() const { return n_elements(shape); }
  std::uint64_t n_bytes() const { return n_values() * dtype_bytes(dtype); }
  /// True if the box is one contiguous run of memory.
  bool dense() const;
};

/// View of the box `part` of a row-major array that covers `held`; `held` must contain `part`.
StridedValues strided_part(const Box& held, const std::byte* values, DType dtype, const Box& part);

/// Copy the box to a dense row-major array of values.n_bytes() bytes.
void gather(const StridedValues& values, std::byte* to);

}  // namespace tailrace
