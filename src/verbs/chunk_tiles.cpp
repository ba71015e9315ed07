// The arithmetic of tiles, and what is held of one.

#include "verbs/chunk_tiles.hpp"

#include <algorithm>
#include <utility>

namespace tailrace::verbs {

ChunkTiles::ChunkTiles(ChunkGrid grid, const Shape& stored_chunk)
    : grid_(std::move(grid)), n_chunks_(grid_.n_per_dimension()), tile_shape_(n_chunks_.size(), 1) {
  for (std::size_t d = 0; d < stored_chunk.size() && d < tile_shape_.size(); ++d) {
    const std::uint64_t extent = std::max<std::uint64_t>(stored_chunk[d], 1);
    const std::uint64_t reached = (extent - 1) / grid_.chunk_shape[d] + 1;
    tile_shape_[d] = std::max<std::uint64_t>(1, std::min(reached, n_chunks_[d]));
  }
}

std::uint64_t ChunkTiles::chunk_at(std::uint64_t position) const {
  const std::size_t n_dims = n_chunks_.size();
  // The tile, dimension by dimension: a row of tiles is as high as its tiles, the last one lower.
  Shape first(n_dims);
  Shape extent(n_dims);
  std::uint64_t column = 1;  // Chunks across all tiles that `first` has settled so far.
  for (std::size_t d = 0; d < n_dims; ++d) {
    std::uint64_t per_chunk = column;  // Positions that one chunk along d stands for.
    for (std::size_t e = d + 1; e < n_dims; ++e) per_chunk *= n_chunks_[e];
    const std::uint64_t tile = position / (per_chunk * tile_shape_[d]);
    first[d] = tile * tile_shape_[d];
    extent[d] = std::min(tile_shape_[d], n_chunks_[d] - first[d]);
    position -= first[d] * per_chunk;
    column *= extent[d];
  }
  for (std::size_t d = n_dims; d-- > 0;) {
    first[d] += position % extent[d];
    position /= extent[d];
  }
  return grid_.index_of(first);
}

Box ChunkTiles::box_from(const Shape& start, std::uint64_t n_max) const {
  Box box{start, grid_.chunk_shape};
  bool whole_so_far = true;  // Along all faster dimensions the box goes through its tile.
  for (std::size_t d = start.size(); d-- > 0;) {
    const std::uint64_t at = start[d] / grid_.chunk_shape[d];
    const std::uint64_t in_tile = at % tile_shape_[d];
    const std::uint64_t extent = std::min(tile_shape_[d], n_chunks_[d] - (at - in_tile));
    std::uint64_t n = 1;
    if (whole_so_far) n = std::clamp<std::uint64_t>(n_max, 1, extent - in_tile);
    whole_so_far = whole_so_far && n == extent;
    n_max /= n;
    box.count[d] = std::min(n * grid_.chunk_shape[d], grid_.shape[d] - start[d]);
  }
  return box;
}

Status TileReader::read(std::size_t field_index, const ChunkTiles& tiles, const Box& box,
                        std::span<std::byte> values) {
  const std::uint64_t n_elements = std::max<std::uint64_t>(box.n_elements(), 1);
  const std::uint64_t element_bytes = values.size() / n_elements;
  if (box.empty() || element_bytes == 0) return input_->read(field_index, box, values);
  if (!held_ || held_field_ != field_index || !contains(*held_, box)) {
    const std::uint64_t n_max = bytes_max_ / (n_elements * element_bytes);
    held_.reset();
    const Box wanted = tiles.box_from(box.start, n_max);
    if (wanted == box) return input_->read(field_index, box, values);
    const std::uint64_t n_bytes = wanted.n_elements() * element_bytes;
    if (values_.capacity() < n_bytes) values_ = Buffer();  // Never both in memory.
    if (values_.capacity() < n_bytes) values_ = Buffer(n_bytes);
    if (!values_.allocated()) return input_->read(field_index, box, values);
    TAILRACE_TRY(input_->read(field_index, wanted, {values_.data(), n_bytes}));
    held_field_ = field_index;
    held_ = wanted;
  }
  copy_box(box, *held_, values_.data(), box, values.data(), element_bytes);
  return Status();
}

}  // namespace tailrace::verbs
