// Slab: a strided hyperslab, the selection of every array interface of the field (HDF5, netCDF,
// NumPy): in each dimension `count` elements from `start`, `stride` apart.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "trz/base/box.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

struct Slab {
  Shape start;
  Shape count;
  Shape stride;  ///< >= 1 each; empty: all 1.

  static Slab of(const Box& box) { return {box.start, box.count, {}}; }
  std::size_t rank() const { return start.size(); }
  std::uint64_t stride_of(std::size_t dimension) const {
    return stride.empty() ? 1 : stride[dimension];
  }
  std::uint64_t n_elements() const { return tailrace::n_elements(count); }
  bool empty() const { return n_elements() == 0; }
  /// Whether the elements fill their bounding box (a stride of a dimension with one element does
  /// not count).
  bool dense() const;
  /// The number, in the row-major order of all elements of `shape`, of the first element, if there
  /// are some and they follow one another in that order. The slab lies within the shape.
  std::optional<std::uint64_t> first_of_run(const Shape& shape) const;
  /// The smallest box that holds all elements; counts of 0 stay 0.
  Box bounding_box() const;
  bool operator==(const Slab&) const = default;
};

/// "[0:64, 32:64:2]": start, end (exclusive), stride where it is not 1; "[]" for a scalar.
std::string slab_text(const Slab& slab);

/// Check that `slab` has the shape's rank, no stride of 0, and lies within it. Slabs without
/// elements are fine wherever they start, up to the shape's end. Safe against overflow.
/// @error invalid_argument  rank, stride.  @error bad_coverage  outside the shape.
Status check_slab(const Slab& slab, const Shape& shape);

/// The elements of `slab` that lie in `box`, as a slab of the same stride, and where they begin
/// within the slab (`first`, counted in the slab's elements per dimension). Empty: none do.
struct SlabPart {
  Slab slab;
  Shape first;
};
SlabPart part_within(const Slab& slab, const Box& box);

/// Copy `part` (of `slab`, by part_within(slab, from_box)) from a dense row-major array that covers
/// `from_box` to the dense row-major array of the slab's elements.
/// Not collective. Thread-safe. Cost: O(elements); runs that lie dense in both are one memcpy.
void gather_part(const SlabPart& part, const Box& from_box, const std::byte* from, const Slab& slab,
                 std::byte* to, std::size_t element_bytes);

/// The way back: from the dense array of the slab's elements into one that covers `to_box`.
void scatter_part(const SlabPart& part, const Slab& slab, const std::byte* from, const Box& to_box,
                  std::byte* to, std::size_t element_bytes);

}  // namespace tailrace
