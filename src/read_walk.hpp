// The chunks of a grid that hold elements of a slab, in order.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/slab.hpp"

namespace tailrace {

/// Walks over them row-major; a chunk that a strided slab jumps over is not among them.
class TouchedChunks {
 public:
  /// @param slab  within the grid's shape, not empty.
  TouchedChunks(const ChunkGrid& grid, const Slab& slab);
  std::uint64_t n_chunks() const { return n_chunks_; }
  /// The next chunks, at most `n_max`; none: that was all.
  void next(std::size_t n_max, std::vector<std::uint64_t>& chunk_indexes);

 private:
  std::vector<std::vector<std::uint64_t>> touched_;  ///< Per dimension, coordinates in the grid.
  Shape n_per_dimension_;
  std::vector<std::size_t> at_;
  std::uint64_t n_chunks_ = 1;
  bool at_end_ = false;
};

}  // namespace tailrace
