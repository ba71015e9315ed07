// Arithmetic of shapes and boxes.

#include "trz/base/box.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "trz/base/status.hpp"

namespace tailrace {

std::uint64_t n_elements(const Shape& shape) {
  std::uint64_t product = 1;
  bool saturated = false;
  for (const std::uint64_t extent : shape) {
    if (extent == 0) return 0;
    saturated = saturated || product > std::numeric_limits<std::uint64_t>::max() / extent;
    if (!saturated) product *= extent;
  }
  return saturated ? std::numeric_limits<std::uint64_t>::max() : product;
}

std::string shape_text(const Shape& shape) {
  if (shape.empty()) return "scalar";
  std::string text;
  for (const std::uint64_t extent : shape) {
    if (!text.empty()) text += 'x';
    text += std::to_string(extent);
  }
  return text;
}

std::string box_text(const Box& box) {
  std::string text = "[";
  for (std::size_t d = 0; d < box.rank(); ++d) {
    if (d > 0) text += ", ";
    text += std::to_string(box.start[d]) + ":" + std::to_string(box.start[d] + box.count[d]);
  }
  return text + "]";
}

Box whole_box(const Shape& shape) { return Box{Shape(shape.size(), 0), shape}; }

Box intersect(const Box& a, const Box& b) {
  TAILRACE_CHECK(a.rank() == b.rank());
  Box common{Shape(a.rank()), Shape(a.rank())};
  for (std::size_t d = 0; d < a.rank(); ++d) {
    const std::uint64_t first = std::max(a.start[d], b.start[d]);
    const std::uint64_t end = std::min(a.start[d] + a.count[d], b.start[d] + b.count[d]);
    common.start[d] = first;
    common.count[d] = end > first ? end - first : 0;
  }
  return common;
}

bool contains(const Box& outer, const Box& inner) {
  if (inner.empty()) return true;
  for (std::size_t d = 0; d < inner.rank(); ++d) {
    if (inner.start[d] < outer.start[d]) return false;
    if (inner.start[d] + inner.count[d] > outer.start[d] + outer.count[d]) return false;
  }
  return true;
}

void copy_box(const Box& part, const Box& from_box, const std::byte* from, const Box& to_box,
              std::byte* to, std::size_t element_bytes) {
  TAILRACE_CHECK(contains(from_box, part) && contains(to_box, part));
  const std::size_t rank = part.rank();
  if (part.empty()) return;

  // Fold the fastest dimensions into one run while the part spans both arrays completely in them.
  std::size_t run_dimension = rank;  // dimensions from here on are inside the run
  std::uint64_t run_elements = 1;
  while (run_dimension > 0) {
    const std::size_t d = run_dimension - 1;
    run_elements *= part.count[d];
    run_dimension = d;
    if (part.count[d] != from_box.count[d] || part.count[d] != to_box.count[d]) break;
  }

  Shape from_stride(rank, 1);
  Shape to_stride(rank, 1);
  for (std::size_t d = rank; d-- > 1;) {
    from_stride[d - 1] = from_stride[d] * from_box.count[d];
    to_stride[d - 1] = to_stride[d] * to_box.count[d];
  }
  std::uint64_t from_element = 0;
  std::uint64_t to_element = 0;
  for (std::size_t d = 0; d < rank; ++d) {
    from_element += (part.start[d] - from_box.start[d]) * from_stride[d];
    to_element += (part.start[d] - to_box.start[d]) * to_stride[d];
  }

  Shape at(run_dimension, 0);
  while (true) {
    std::memcpy(to + to_element * element_bytes, from + from_element * element_bytes,
                static_cast<std::size_t>(run_elements * element_bytes));
    std::size_t d = run_dimension;
    while (true) {
      if (d == 0) return;
      --d;
      from_element += from_stride[d];
      to_element += to_stride[d];
      if (++at[d] < part.count[d]) break;
      from_element -= part.count[d] * from_stride[d];
      to_element -= part.count[d] * to_stride[d];
      at[d] = 0;
    }
  }
}

Shape ChunkGrid::n_per_dimension() const {
  Shape n(shape.size());
  for (std::size_t d = 0; d < shape.size(); ++d) {
    n[d] = shape[d] / chunk_shape[d] + (shape[d] % chunk_shape[d] != 0 ? 1 : 0);
  }
  return n;
}

std::uint64_t ChunkGrid::n_chunks() const { return n_elements(n_per_dimension()); }

Shape ChunkGrid::coordinates(std::uint64_t chunk_index) const {
  const Shape n = n_per_dimension();
  Shape at(n.size());
  for (std::size_t d = n.size(); d-- > 0;) {
    at[d] = chunk_index % n[d];
    chunk_index /= n[d];
  }
  return at;
}

std::uint64_t ChunkGrid::index_of(const Shape& coordinates) const {
  const Shape n = n_per_dimension();
  std::uint64_t index = 0;
  for (std::size_t d = 0; d < n.size(); ++d) index = index * n[d] + coordinates[d];
  return index;
}

Box ChunkGrid::full_box(std::uint64_t chunk_index) const {
  Box box{coordinates(chunk_index), chunk_shape};
  for (std::size_t d = 0; d < shape.size(); ++d) box.start[d] *= chunk_shape[d];
  return box;
}

Box ChunkGrid::clipped_box(std::uint64_t chunk_index) const {
  return intersect(full_box(chunk_index), whole_box(shape));
}

Box ChunkGrid::touched(const Box& box) const {
  Box grid{Shape(shape.size(), 0), Shape(shape.size(), 0)};
  if (box.empty()) {
    if (shape.empty()) return Box{{}, {}};
    return grid;
  }
  for (std::size_t d = 0; d < shape.size(); ++d) {
    grid.start[d] = box.start[d] / chunk_shape[d];
    grid.count[d] = (box.start[d] + box.count[d] - 1) / chunk_shape[d] - grid.start[d] + 1;
  }
  return grid;
}

// --- Views of boxes inside larger arrays.

bool StridedValues::dense() const {
  std::uint64_t run = 1;
  for (std::size_t d = shape.size(); d > 0; --d) {
    if (shape[d - 1] != 1 && strides[d - 1] != run) return false;
    run *= shape[d - 1];
  }
  return true;
}

StridedValues strided_part(const Box& held, const std::byte* values, DType dtype, const Box& part) {
  StridedValues view{values, dtype, part.count, Shape(part.rank(), 1)};
  std::uint64_t stride = 1;
  std::uint64_t first = 0;
  for (std::size_t d = part.rank(); d > 0; --d) {
    view.strides[d - 1] = stride;
    first += (part.start[d - 1] - held.start[d - 1]) * stride;
    stride *= held.count[d - 1];
  }
  view.data = values + first * dtype_bytes(dtype);
  return view;
}

void gather(const StridedValues& values, std::byte* to) {
  if (values.n_values() == 0) return;
  // Extents of the array that contains the box, as far as the strides determine them.
  Box held{Shape(values.shape.size(), 0), values.shape};
  for (std::size_t d = 1; d < held.rank(); ++d) {
    held.count[d] = values.strides[d - 1] / values.strides[d];
  }
  const Box part{held.start, values.shape};
  copy_box(part, held, values.data, part, to, dtype_bytes(values.dtype));
}

}  // namespace tailrace
