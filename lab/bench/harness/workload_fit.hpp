// Conversion of a field to a rank's block of any size, by repetition or interpolation.

#pragma once

#include <span>

#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/dtype.hpp"

namespace tailrace::bench {

/// Cyclic shift of a field on rank `rank`. Shifts differ widely in every dimension, so that no two
/// ranks have the same values at the same position.
Shape shift_of(int rank, const Shape& shape);

/// Fill `block` (block_shape, row-major) with `whole`, repeated in all dimensions and shifted
/// cyclically. Not collective.
void tile(std::span<const std::byte> whole, const Shape& whole_shape, std::uint64_t element_bytes,
          const Shape& shift, const Shape& block_shape, std::span<std::byte> block);

/// Interpolate linearly between neighbours in dimensions where the block is longer than the field
/// (the last value's neighbour is the first); otherwise like tile(). The result is smoother than
/// the field. f32 and f64 only. Not collective. @returns the block; unallocated if memory is short.
Buffer refine(DType dtype, std::span<const std::byte> whole, const Shape& whole_shape,
              const Shape& shift, const Shape& block_shape);

}  // namespace tailrace::bench
