// Coordinates per dimension, and the odometer over them.

#include "read_walk.hpp"

namespace tailrace {
namespace {

/// In each dimension the coordinates of the chunks that hold elements of the slab.
std::vector<std::vector<std::uint64_t>> touched_coordinates(const ChunkGrid& grid,
                                                            const Slab& slab) {
  std::vector<std::vector<std::uint64_t>> touched(slab.rank());
  for (std::size_t d = 0; d < slab.rank(); ++d) {
    const std::uint64_t extent = grid.chunk_shape[d];
    const std::uint64_t stride = slab.stride_of(d);
    const std::uint64_t last = slab.start[d] + (slab.count[d] - 1) * stride;
    for (std::uint64_t at = slab.start[d];;) {
      touched[d].push_back(at / extent);
      // The first element behind this chunk.
      const std::uint64_t chunk_last = at + (extent - 1 - at % extent);
      if (last <= chunk_last) break;
      at += ((chunk_last - at) / stride + 1) * stride;
    }
  }
  return touched;
}

}  // namespace

TouchedChunks::TouchedChunks(const ChunkGrid& grid, const Slab& slab)
    : touched_(touched_coordinates(grid, slab)),
      n_per_dimension_(grid.n_per_dimension()),
      at_(slab.rank(), 0) {
  for (const auto& coordinates : touched_) n_chunks_ *= coordinates.size();
}

void TouchedChunks::next(std::size_t n_max, std::vector<std::uint64_t>& chunk_indexes) {
  chunk_indexes.clear();
  while (!at_end_ && chunk_indexes.size() < n_max) {
    std::uint64_t index = 0;
    for (std::size_t d = 0; d < at_.size(); ++d) {
      index = index * n_per_dimension_[d] + touched_[d][at_[d]];
    }
    chunk_indexes.push_back(index);
    std::size_t d = at_.size();
    while (d > 0 && ++at_[d - 1] == touched_[d - 1].size()) at_[--d] = 0;
    at_end_ = d == 0;
  }
}

}  // namespace tailrace
