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
  /// Return true if the elements fill their bounding box. The stride of a dimension with one
  /// element does not matter.
  bool dense() const;
  /// Return the row-major index in `shape` of the first element, if the slab is not empty and its
  /// elements are contiguous in that order. The slab lies within the shape.
  std::optional<std::uint64_t> first_of_run(const Shape& shape) const;
  /// Return the smallest box that contains all elements; counts of 0 stay 0.
  Box bounding_box() const;
  /// Return the box that the elements fill in their dense array.
  Box dense_box() const { return {Shape(rank(), 0), count}; }
  bool operator==(const Slab&) const = default;
};

/// Format a slab: "[0:64, 32:64:2]" is start, end (exclusive), stride unless 1; "[]" for a scalar.
std::string slab_text(const Slab& slab);

/// Check that `slab` has the shape's rank, no stride of 0, and lies within the shape. Empty slabs
/// may start anywhere up to the shape's end. Safe against overflow.
/// @error invalid_argument  rank, stride.  @error bad_coverage  outside the shape.
Status check_slab(const Slab& slab, const Shape& shape);

/// Part of a slab inside a box: a slab of the same stride, and its position within the slab
/// (`first`, in the slab's elements per dimension). Empty if no element is in the box.
struct SlabPart {
  Slab slab;
  Shape first;
  /// Return the box that the part fills in the slab's dense array.
  Box box() const { return {first, slab.count}; }
};
SlabPart part_within(const Slab& slab, const Box& box);

/// Copy `part` (of `slab`, by part_within(slab, from_box)) from a dense row-major array that covers
/// `from_box` to the dense row-major array of the slab's elements. Not collective. Thread-safe.
/// Cost: O(elements); a run that is contiguous in both is one memcpy.
void gather_part(const SlabPart& part, const Box& from_box, const std::byte* from, const Slab& slab,
                 std::byte* to, std::size_t element_bytes);

/// Copy `part` from the dense array of the slab's elements into an array that covers `to_box`.
void scatter_part(const SlabPart& part, const Slab& slab, const std::byte* from, const Box& to_box,
                  std::byte* to, std::size_t element_bytes);

}  // namespace tailrace
