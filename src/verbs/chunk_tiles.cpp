// The arithmetic of tiles, what is held of one, and the two formulas of the deal.

#include "verbs/chunk_tiles.hpp"

#include <algorithm>
#include <utility>

namespace tailrace::verbs {
namespace {

/// Reads of about this size amortise the call.
constexpr std::uint64_t read_bytes = 4U << 20;

// Products of two byte counts and a rank number do not fit 64 bits.
__extension__ using Wide = __int128;

/// How many of `n_chunks` equal chunks, which begin at `before_bytes` of `total_bytes` and are
/// `own_bytes` in all, have their middle within the shares of the ranks before `rank`.
std::uint64_t chunks_before(Wide before_bytes, Wide own_bytes, Wide total_bytes,
                            std::uint64_t n_chunks, int rank, int n_ranks) {
  // Chunk k goes to rank floor((before + (2k+1) own / 2n) ranks / total); solved for the least k.
  const Wide n = n_chunks;
  const Wide step = 2 * own_bytes * n_ranks;
  if (step == 0) return rank == 0 ? 0 : n_chunks;
  const Wide distance = 2 * n * (total_bytes * rank - before_bytes * n_ranks) - own_bytes * n_ranks;
  if (distance <= 0) return 0;
  return static_cast<std::uint64_t>(std::min<Wide>((distance + step - 1) / step, n));
}

/// Cuts a tile into as few even boxes of at most so many chunks as can be; of equal numbers of
/// boxes, the one that leaves the fastest dimensions longest.
class TileCut {
 public:
  TileCut(const Shape& tile, std::uint64_t n_max)
      : tile_(tile), n_max_(n_max), now_(tile.size(), 1), best_(tile.size(), 1) {
    try_dimension(tile.size(), 1, 1);
  }
  const Shape& best() const { return best_; }

 private:
  /// Dimensions from `d` on are cut: into `n_boxes`, of `n_chunks` each.
  void try_dimension(std::size_t d, std::uint64_t n_boxes, std::uint64_t n_chunks) {
    if (n_boxes >= best_boxes_ || ++n_tried_ > tried_max) return;
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

  static constexpr std::uint64_t tried_max = 100'000;  // Of many dimensions: the best of these.
  const Shape& tile_;
  std::uint64_t n_max_;
  Shape now_;
  Shape best_;
  std::uint64_t best_boxes_ = UINT64_MAX;
  std::uint64_t n_tried_ = 0;
};

}  // namespace

Shape box_shape_for(const Shape& shape, const Shape& chunk_shape, DType dtype) {
  Shape box(shape.size(), 1);
  for (std::size_t d = 0; d < shape.size() && d < chunk_shape.size(); ++d) {
    box[d] = std::clamp<std::uint64_t>(chunk_shape[d], 1, std::max<std::uint64_t>(shape[d], 1));
  }
  // Whole chunks are joined along the fastest dimensions first, where they lie side by side.
  for (std::size_t d = shape.size(); d-- > 0;) {
    const std::uint64_t now_bytes = n_elements(box) * dtype_bytes(dtype);
    if (now_bytes >= read_bytes || box[d] >= shape[d]) continue;
    const std::uint64_t times = std::max<std::uint64_t>(read_bytes / now_bytes, 1);
    box[d] = std::min(box[d] * times, shape[d]);
  }
  return box;
}

ChunkTiles::ChunkTiles(ChunkGrid grid, const Shape& stored_chunk, std::uint64_t n_max)
    : grid_(std::move(grid)), n_chunks_(grid_.n_per_dimension()), tile_shape_(n_chunks_.size(), 1) {
  for (std::size_t d = 0; d < stored_chunk.size() && d < tile_shape_.size(); ++d) {
    const std::uint64_t extent = std::max<std::uint64_t>(stored_chunk[d], 1);
    const std::uint64_t reached = (extent - 1) / grid_.chunk_shape[d] + 1;
    tile_shape_[d] = std::max<std::uint64_t>(1, std::min(reached, n_chunks_[d]));
  }
  if (n_elements(tile_shape_) > n_max) tile_shape_ = Shape(TileCut(tile_shape_, n_max).best());
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
    if (!values_.allocated()) {
      bytes_max_ /= 2;  // The next one asks for less.
      return input_->read(field_index, box, values);
    }
    peak_bytes_ = std::max<std::uint64_t>(peak_bytes_, values_.capacity());
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
