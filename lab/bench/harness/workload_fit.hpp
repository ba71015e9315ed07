// From a field to a rank's block of any size: repeat it or interpolate between its values.

#pragma once

#include <span>

#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/dtype.hpp"

namespace tailrace::bench {

/// How far rank `rank` shifts a field around: far apart for all ranks in every dimension, so that
/// no two of them hold the same values at the same place.
Shape shift_of(int rank, const Shape& shape);

/// Fill `block` (block_shape, row-major) with `whole` repeated in all dimensions, shifted around.
/// Not collective.
void tile(std::span<const std::byte> whole, const Shape& whole_shape, std::uint64_t element_bytes,
          const Shape& shift, const Shape& block_shape, std::span<std::byte> block);

/// Where the block is longer than the field: linear interpolation between neighbours (the last
/// one's is the first), elsewhere as tile(). Smoother than what it is made of. f32 and f64 only.
/// Not collective. @returns the block; unallocated if memory is short.
Buffer refine(DType dtype, std::span<const std::byte> whole, const Shape& whole_shape,
              const Shape& shift, const Shape& block_shape);

}  // namespace tailrace::bench
