// BlockSample: representative blocks of a chunk, and the array gathered from them.
//
// Two schemes. uniform: blocks of 12 per dimension on a regular lattice, about 1 % of the values
// (Liang et al. 2019, V-C). In 1-D the blocks are runs of 1728, in 2-D 42 x 42, so that each has
// about as many values. scattered: many small blocks at pseudo-random positions, the same ones each
// time. It is better at equal volume (measured: lab/bench/results/size_prediction.csv).

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trz/base/box.hpp"

namespace tailrace {

/// Selection of equal blocks of a shape.
struct BlockSample {
  Shape block_shape;
  std::vector<Shape> starts;  ///< Each block lies entirely within the shape. No block occurs twice.

  std::uint64_t n_values() const { return n_elements(block_shape) * starts.size(); }
  /// Shape of the gathered array: the blocks stacked along the first dimension in which a block is
  /// longer than 1, so that leading extents of 1 stay.
  Shape gathered_shape() const;
};

/// Select one of every k blocks along each of the last three dimensions (Liang et al. 2019, V-C). k
/// is the largest one that yields `share` of the values. Along leading dimensions a block has one
/// index, and every index is selected. A block larger than the shape is clipped to it.
/// Not collective. Thread-safe.
BlockSample uniform_blocks(const Shape& shape, double share = 0.01);

/// Select `n_blocks` blocks, or fewer if the shape has no space for them. Splits the row-major
/// sequence of block positions, which are multiples of block_shape, into n_blocks equal parts, and
/// selects a pseudo-random block from each. A block larger than the shape is clipped to it.
/// Not collective. Thread-safe.
BlockSample scattered_blocks(const Shape& shape, const Shape& block_shape, std::size_t n_blocks);

/// Copy the blocks consecutively; `to` has n_values() elements. The blocks lie in values.shape. Not
/// collective. Thread-safe.
void gather_blocks(const StridedValues& values, const BlockSample& sample, std::byte* to);

}  // namespace tailrace
