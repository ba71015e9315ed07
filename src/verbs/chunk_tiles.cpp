// The arithmetic of tiles, the cache of boxes that are read together, and the two formulas of the
// deal.

#include "verbs/chunk_tiles.hpp"

#include <algorithm>
#include <utility>

namespace tailrace::verbs {
namespace {

/// Size of a read that amortizes the cost of the call.
constexpr std::uint64_t read_bytes = 4U << 20;

// Products of two byte counts and a rank number exceed 64 bits.
__extension__ using Wide = __int128;

/// Number of chunks whose middle lies in the shares of the ranks before `rank`. The `n_chunks`
/// equal chunks start at `before_bytes` of `total_bytes` and have `own_bytes` in total.
std::uint64_t chunks_before(Wide before_bytes, Wide own_bytes, Wide total_bytes,
                            std::uint64_t n_chunks, int rank, int n_ranks) {
  // Chunk k goes to rank floor((before + (2k+1) own / 2n) ranks / total). Solve for the least k.
  const Wide n = n_chunks;
  const Wide step = 2 * own_bytes * n_ranks;
  if (step == 0) return rank == 0 ? 0 : n_chunks;
  const Wide distance = 2 * n * (total_bytes * rank - before_bytes * n_ranks) - own_bytes * n_ranks;
  if (distance <= 0) return 0;
  return static_cast<std::uint64_t>(std::min<Wide>((distance + step - 1) / step, n));
}

/// Cuts a tile into as few even boxes of at most `n_max` chunks as possible. Of cuts into equally
/// many boxes, chooses the one whose boxes are longest along the fastest dimensions.
class TileCut {
 public:
  TileCut(const Shape& tile, std::uint64_t n_max)
      : tile_(tile), n_max_(n_max), now_(tile.size(), 1), best_(tile.size(), 1) {
    try_dimension(tile.size(), 1, 1);
  }
  const Shape& best() const { return best_; }

 private:
  /// Cut the dimensions before `d`; those from `d` on are cut into `n_boxes` of `n_chunks` chunks
  /// each.
  void try_dimension(std::size_t d, std::uint64_t n_boxes, std::uint64_t n_chunks) {
    if (n_boxes >= best_boxes_ || ++n_tried_ > kTriedMax) return;
    if (d == 0) {
      best_ = now_;
      best_boxes_ = n_boxes;
      return;
    }
    const std::uint64_t whole = tile_[d - 1];
    std::uint64_t last = 0;
    for (std::uint64_t n = (whole - 1) / std::max<std::uint64_t>(n_max_ / n_chunks, 1) + 1;
         n <= whole && n_boxes * n < best_boxes_; ++n) {
      now_[d - 1] = (whole - 1) / n + 1;
      if (now_[d - 1] != last) try_dimension(d - 1, n_boxes * n, n_chunks * now_[d - 1]);
      last = now_[d - 1];
    }
  }

  // Limit for arrays of many dimensions: the best cut found until then is used.
  static constexpr std::uint64_t kTriedMax = 100'000;
  const Shape& tile_;
  std::uint64_t n_max_;
  Shape now_;
  Shape best_;
  std::uint64_t best_boxes_ = UINT64_MAX;
  std::uint64_t n_tried_ = 0;
};

/// One of the cells into which a box of chunks is cut; cells are ordered row-major.
struct Cell {
  Shape first;   ///< First chunk.
  Shape extent;  ///< Extent in chunks; smaller for the last cells of the box.
  std::uint64_t position = 0;
};

/// Compute a cell dimension by dimension; `cell_along` returns its index along each. The chunks of
/// a row of cells are consecutive. The last cell along a dimension may be shorter.
template <class CellAlong>
Cell compute_cell(const Shape& n_chunks, const Shape& cell_shape, CellAlong&& cell_along) {
  const std::size_t n_dims = n_chunks.size();
  Cell cell{Shape(n_dims), Shape(n_dims), 0};
  std::uint64_t column = 1;  // Chunks across the cells chosen so far.
  for (std::size_t d = 0; d < n_dims; ++d) {
    std::uint64_t per_chunk = column;  // Positions per chunk along d.
    for (std::size_t e = d + 1; e < n_dims; ++e) per_chunk *= n_chunks[e];
    cell.first[d] = cell_along(d, per_chunk, cell.position) * cell_shape[d];
    cell.extent[d] = std::min(cell_shape[d], n_chunks[d] - cell.first[d]);
    cell.position += cell.first[d] * per_chunk;
    column *= cell.extent[d];
  }
  return cell;
}

Cell cell_at(std::uint64_t position, const Shape& n_chunks, const Shape& cell_shape) {
  return compute_cell(n_chunks, cell_shape,
                      [&](std::size_t d, std::uint64_t per_chunk, std::uint64_t before) {
                        return (position - before) / (per_chunk * cell_shape[d]);
                      });
}

Cell cell_around(const Shape& chunk, const Shape& n_chunks, const Shape& cell_shape) {
  return compute_cell(n_chunks, cell_shape, [&](std::size_t d, std::uint64_t, std::uint64_t) {
    return chunk[d] / cell_shape[d];
  });
}

Shape row_major_at(std::uint64_t position, const Shape& extent) {
  Shape at(extent.size());
  for (std::size_t d = extent.size(); d-- > 0;) {
    at[d] = position % extent[d];
    position /= extent[d];
  }
  return at;
}

void add_to(Shape& at, const Shape& more) {
  for (std::size_t d = 0; d < at.size(); ++d) at[d] += more[d];
}

void take_from(Shape& at, const Shape& less) {
  for (std::size_t d = 0; d < at.size(); ++d) at[d] -= less[d];
}

/// The smallest box that contains positions [first, end) of an array in row-major order.
Box box_of_positions(const ChunkPositions& positions, const Shape& extent) {
  Box box{row_major_at(positions.first, extent), Shape(extent.size(), 1)};
  const Shape last = row_major_at(positions.end - 1, extent);
  for (std::size_t d = 0; d < extent.size(); ++d) {
    box.count[d] = last[d] - box.start[d] + 1;
    if (box.count[d] == 1) continue;
    for (++d; d < extent.size(); ++d) {
      box.start[d] = 0;
      box.count[d] = extent[d];
    }
  }
  return box;
}

/// Decoding a group of fewer tiles again costs little more than writing and reading a scratch file.
constexpr std::size_t kScratchTilesMin = 3;
/// Buffer size for packing values before each write.
constexpr std::uint64_t kPackBytesMax = 1U << 20;
constexpr std::uint64_t kPackBytesMin = 64U << 10;

}  // namespace

Shape box_shape_for(const Shape& shape, const Shape& chunk_shape, DType dtype) {
  Shape box(shape.size(), 1);
  for (std::size_t d = 0; d < shape.size() && d < chunk_shape.size(); ++d) {
    box[d] = std::clamp<std::uint64_t>(chunk_shape[d], 1, std::max<std::uint64_t>(shape[d], 1));
  }
  // Join complete chunks along the fastest dimensions first, where they are contiguous.
  for (std::size_t d = shape.size(); d-- > 0;) {
    const std::uint64_t now_bytes = n_elements(box) * dtype_bytes(dtype);
    if (now_bytes >= read_bytes || box[d] >= shape[d]) continue;
    const std::uint64_t times = std::max<std::uint64_t>(read_bytes / now_bytes, 1);
    box[d] = std::min(box[d] * times, shape[d]);
  }
  return box;
}

ChunkTiles::ChunkTiles(ChunkGrid grid, const Shape& stored_chunk, std::uint64_t n_max)
    : grid_(std::move(grid)),
      stored_chunk_(stored_chunk),
      n_chunks_(grid_.n_per_dimension()),
      tile_shape_(n_chunks_.size(), 1) {
  for (std::size_t d = 0; d < stored_chunk.size() && d < tile_shape_.size(); ++d) {
    const std::uint64_t extent = std::max<std::uint64_t>(stored_chunk[d], 1);
    const std::uint64_t reached = (extent - 1) / grid_.chunk_shape[d] + 1;
    tile_shape_[d] = std::max<std::uint64_t>(1, std::min(reached, n_chunks_[d]));
  }
  group_shape_ = tile_shape_;
  if (n_elements(tile_shape_) <= n_max) return;
  tile_shape_ = Shape(TileCut(group_shape_, n_max).best());
  for (std::size_t d = 0; d < tile_shape_.size(); ++d) {
    group_shape_[d] = ((group_shape_[d] - 1) / tile_shape_[d] + 1) * tile_shape_[d];
  }
}

std::uint64_t ChunkTiles::chunk_at(std::uint64_t position) const {
  const Cell group = cell_at(position, n_chunks_, group_shape_);
  position -= group.position;
  const Cell tile = cell_at(position, group.extent, tile_shape_);
  Shape chunk = row_major_at(position - tile.position, tile.extent);
  add_to(chunk, tile.first);
  add_to(chunk, group.first);
  return grid_.index_of(chunk);
}

std::uint64_t ChunkTiles::position_of(const Shape& coordinates) const {
  Shape chunk = coordinates;
  const Cell group = cell_around(chunk, n_chunks_, group_shape_);
  take_from(chunk, group.first);
  const Cell tile = cell_around(chunk, group.extent, tile_shape_);
  take_from(chunk, tile.first);
  std::uint64_t in_tile = 0;
  for (std::size_t d = 0; d < chunk.size(); ++d) in_tile = in_tile * tile.extent[d] + chunk[d];
  return group.position + tile.position + in_tile;
}

ChunkPositions ChunkTiles::group_at(std::uint64_t position) const {
  const Cell group = cell_at(position, n_chunks_, group_shape_);
  return {group.position, group.position + n_elements(group.extent)};
}

std::vector<Box> ChunkTiles::tile_parts(const ChunkPositions& chunks) const {
  const Cell group = cell_at(chunks.first, n_chunks_, group_shape_);
  std::vector<Box> parts;
  for (std::uint64_t position = chunks.first; position < chunks.end;) {
    const Cell tile = cell_at(position - group.position, group.extent, tile_shape_);
    const std::uint64_t tile_first = group.position + tile.position;
    const std::uint64_t end = std::min(chunks.end, tile_first + n_elements(tile.extent));
    Box part = box_of_positions({position - tile_first, end - tile_first}, tile.extent);
    add_to(part.start, tile.first);
    add_to(part.start, group.first);
    for (std::size_t d = 0; d < part.rank(); ++d) {
      part.start[d] *= grid_.chunk_shape[d];
      part.count[d] =
          std::min(part.count[d] * grid_.chunk_shape[d], grid_.shape[d] - part.start[d]);
    }
    parts.push_back(std::move(part));
    position = end;
  }
  return parts;
}

Box ChunkTiles::box_from(const Shape& start, std::uint64_t n_max) const {
  Box box{start, grid_.chunk_shape};
  bool whole_so_far = true;  // The box spans its tile along all faster dimensions.
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

// --- Boxes that are read together, and scratch files.

std::uint64_t TileReader::pack_bytes(std::uint64_t bytes_max) {
  return std::clamp(bytes_max / 16, kPackBytesMin, kPackBytesMax);
}

void TileReader::expect(std::size_t field_index, const ChunkPositions& chunks) {
  expected_.emplace(field_index, chunks);
}

/// Provide `n_bytes` in `values_`; its contents are lost.
bool TileReader::make_room(std::uint64_t n_bytes) {
  held_.reset();
  if (values_.capacity() < n_bytes) values_ = Buffer();  // Free the old buffer first.
  if (values_.capacity() < n_bytes) values_ = Buffer(n_bytes);
  const std::uint64_t packs = scratch_ ? scratch_->pack_bytes() : 0;
  peak_bytes_ = std::max<std::uint64_t>(peak_bytes_, values_.capacity() + packs);
  return values_.allocated();
}

void TileReader::drop_scratch(const Status& why) {
  scratch_.reset();
  open_scratch_ = nullptr;
  scratch_failure_ = why;
}

bool TileReader::in_scratch(std::size_t field_index, const Box& box) {
  return scratch_ && scratch_field_ == field_index && scratch_->find(box);
}

bool TileReader::holds(std::size_t field_index, const Box& box) const {
  return held_ && held_field_ == field_index && contains(*held_, box);
}

/// When the first chunk of this rank in a group is read, decode all of them into a scratch file.
/// Random reads start no group, or each group once. A failure affects only the scratch file.
void TileReader::begin_group(std::size_t field_index, const ChunkTiles& tiles, const Box& box,
                             std::uint64_t element_bytes) {
  if (!open_scratch_ || tiles.tiles_of_group() < kScratchTilesMin) return;
  if (in_scratch(field_index, box)) return;
  const ChunkGrid& grid = tiles.grid();
  Shape chunk = box.start;
  for (std::size_t d = 0; d < chunk.size(); ++d) chunk[d] /= grid.chunk_shape[d];
  if (box != grid.clipped_box(grid.index_of(chunk))) return;
  const std::uint64_t position = tiles.position_of(chunk);
  ChunkPositions own = tiles.group_at(position);
  const auto [begin, end] = expected_.equal_range(field_index);
  const auto run = std::find_if(begin, end, [&](const auto& expected) {
    return expected.second.first <= position && position < expected.second.end;
  });
  if (run == end) return;
  own = {std::max(own.first, run->second.first), std::min(own.end, run->second.end)};
  if (position != own.first) return;
  std::vector<Box> parts = tiles.tile_parts(own);
  const std::uint64_t stored_bytes = n_elements(tiles.stored_chunk()) * element_bytes;
  if (parts.size() < kScratchTilesMin || stored_bytes > std::max(bytes_max_, whole_bytes_)) {
    return;
  }

  scratch_.reset();  // Free its space for the new file.
  std::uint64_t n_bytes = 0;
  for (const Box& part : parts) n_bytes += part.n_elements() * element_bytes;
  Result<std::unique_ptr<Storage>> storage = open_scratch_(n_bytes);
  if (!storage.ok()) {  // A smaller group may still fit.
    if (scratch_refusal_.ok()) scratch_refusal_ = storage.status();
    return;
  }
  const Status filled = local_part([&] {
    scratch_.emplace(std::move(*storage), std::move(parts), element_bytes, pack_bytes(bytes_max_),
                     scratch_threads_);
    scratch_field_ = field_index;
    const std::uint64_t memory_bytes = std::max(stored_bytes, std::min(n_bytes, bytes_max_));
    if (!make_room(memory_bytes))
      return Status(Code::out_of_memory,
                    "not enough memory for a buffer of " + std::to_string(memory_bytes) + " bytes");
    return scratch_->fill(*input_, field_index, tiles.stored_chunk(),
                          {values_.data(), memory_bytes});
  });
  // If the input caused the failure, the next read reports it.
  if (values_.capacity() > bytes_max_) values_ = Buffer();  // Reserved for decoding only.
  if (!filled.ok()) return drop_scratch(filled);
  scratch_bytes_ += n_bytes;
}

/// Cache the part of a scratch file that contains this box, or read it into `values` if it is
/// exactly the box.
/// @returns false if no part contains the box, or it cannot be read.
bool TileReader::take_from_scratch(std::size_t field_index, const Box& box,
                                   std::span<std::byte> values, std::uint64_t element_bytes) {
  if (!in_scratch(field_index, box)) return false;
  const std::size_t index = *scratch_->find(box);
  const Box& part = scratch_->part(index);
  const bool whole = part == box;
  const std::uint64_t n_bytes = part.n_elements() * element_bytes;
  if (!whole && !make_room(n_bytes)) return false;
  const std::span<std::byte> to = whole ? values : std::span(values_.data(), n_bytes);
  if (const Status read = scratch_->read(index, to); !read.ok()) {
    drop_scratch(read);
    return false;
  }
  if (whole) return true;
  held_field_ = field_index;
  held_ = part;
  copy_box(box, *held_, values_.data(), box, values.data(), element_bytes);
  return true;
}

Status TileReader::read(std::size_t field_index, const ChunkTiles& tiles, const Box& box,
                        std::span<std::byte> values) {
  const std::uint64_t element_bytes = values.size() / std::max<std::uint64_t>(box.n_elements(), 1);
  if (!box.empty() && element_bytes > 0) {
    // If memory is too small to plan a group, read without one.
    static_cast<void>(local_part([&] {
      begin_group(field_index, tiles, box, element_bytes);
      return Status();
    }));
  }
  return look(field_index, tiles, box, values);
}

Status TileReader::look(std::size_t field_index, const ChunkTiles& tiles, const Box& box,
                        std::span<std::byte> values) {
  const std::uint64_t n_elements = std::max<std::uint64_t>(box.n_elements(), 1);
  const std::uint64_t element_bytes = values.size() / n_elements;
  if (box.empty() || element_bytes == 0) return input_->read(field_index, box, values);
  if (!holds(field_index, box)) {
    if (take_from_scratch(field_index, box, values, element_bytes)) return Status();
    const std::uint64_t n_max = bytes_max_ / (n_elements * element_bytes);
    held_.reset();
    const Box wanted = tiles.box_from(box.start, n_max);
    if (wanted == box) return input_->read(field_index, box, values);
    const std::uint64_t n_bytes = wanted.n_elements() * element_bytes;
    if (!make_room(n_bytes)) {
      bytes_max_ /= 2;  // Request less next time.
      return input_->read(field_index, box, values);
    }
    TAILRACE_TRY(input_->read(field_index, wanted, {values_.data(), n_bytes}));
    held_field_ = field_index;
    held_ = wanted;
  }
  copy_box(box, *held_, values_.data(), box, values.data(), element_bytes);
  return Status();
}

std::vector<ChunkRun> deal_chunks(std::span<const DealtField> fields, int rank, int n_ranks) {
  const auto ranks = static_cast<std::uint64_t>(n_ranks);
  const auto left_over_bytes = [&](const DealtField& field) -> Wide {
    if (field.n_chunks == 0) return 0;
    return Wide(field.raw_bytes) * (field.n_chunks % ranks) / field.n_chunks;
  };
  Wide total_bytes = 0;
  for (const DealtField& field : fields) total_bytes += left_over_bytes(field);

  std::vector<ChunkRun> runs;
  const auto add = [&](std::size_t field_index, std::uint64_t first, std::uint64_t end) {
    if (first < end) runs.push_back({field_index, first, end});
  };
  Wide before_bytes = 0;
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const std::uint64_t even_share = fields[f].n_chunks / ranks;
    const std::uint64_t n_left_over = fields[f].n_chunks % ranks;
    const auto position = static_cast<std::uint64_t>(rank);
    add(f, position * even_share, (position + 1) * even_share);
    const Wide own_bytes = left_over_bytes(fields[f]);
    const auto boundary = [&](int r) {
      if (r == n_ranks) return n_left_over;
      return chunks_before(before_bytes, own_bytes, total_bytes, n_left_over, r, n_ranks);
    };
    const std::uint64_t even_end = even_share * ranks;
    add(f, even_end + boundary(rank), even_end + boundary(rank + 1));
    before_bytes += own_bytes;
  }
  return runs;
}

}  // namespace tailrace::verbs
