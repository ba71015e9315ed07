// BlockSample: which blocks of a chunk stand for the whole, and the array that they make together.
//
// Two schemes. uniform: blocks of 12 per dimension on a regular lattice, about 1 % of the values
// (Liang et al. 2019, V-C; in 1-D runs of 1728, in 2-D 42 x 42, so that a block has as many
// values). scattered: many small blocks at pseudo-random places, the same ones each time; better at
// equal volume (measured: lab/bench/results/size_prediction.csv).

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trz/base/box.hpp"

namespace tailrace {

/// Equal blocks of a shape.
struct BlockSample {
  Shape block_shape;
  std::vector<Shape> starts;  ///< Each block lies wholly within the shape. No block twice.

  std::uint64_t n_values() const { return n_elements(block_shape) * starts.size(); }
  /// Shape of the gathered array: the blocks stacked along the first dimension in which a block
  /// extends at all, so that leading ones stay ones.
  Shape gathered_shape() const;
};

/// Liang et al. 2019, V-C: one block of every k along each dimension, the largest k that still
/// gives `share` of the values. Beyond three dimensions the leading ones are taken one index at a
/// time. Where a shape is smaller than a block, the block is cut to it.
/// Not collective. Thread-safe.
BlockSample uniform_blocks(const Shape& shape, double share = 0.01);

/// `n_blocks` blocks (fewer where the shape has no room), scattered over the shape with one in each
/// of n_blocks equal parts of the row-major order of block places, which are multiples of
/// block_shape. Where a shape is smaller than a block, the block is cut to it.
/// Not collective. Thread-safe.
BlockSample scattered_blocks(const Shape& shape, const Shape& block_shape, std::size_t n_blocks);

/// Copy the blocks behind one another; `to` has n_values() elements. The blocks lie in
/// values.shape. Not collective. Thread-safe.
void gather_blocks(const StridedValues& values, const BlockSample& sample, std::byte* to);

}  // namespace tailrace
