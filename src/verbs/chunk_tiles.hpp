// Tiles: the order in which chunks of an array are read. The deal: the distribution of chunks over
// ranks.
//
// Tiles serve to read an array in boxes that do not match its stored chunks. Without tiles, a
// stored chunk that many boxes cross would be decoded for each of them. Memory may be too small to
// hold all boxes between two that share the chunk. So boxes are processed tile by tile. A tile
// consists of as many boxes as one stored chunk spans in each dimension. As many boxes of a tile as
// memory allows are read in one call. A tile that exceeds memory becomes a group: it is cut into as
// few even tiles as possible. Then each tile of the group decodes the stored chunks again.
// Alternatively, all chunks of a group are decoded once, into a scratch file (tile_scratch.hpp).
//
// The deal needs no communication. Every field is spread evenly: rank r processes the r-th run of
// n_chunks / n_ranks chunks. So each rank meets every kind of data, and no rank gets all of a slow
// field. The remaining chunks (per field fewer than ranks) are dealt contiguously by bytes over all
// fields' remainders. Both are closed formulas: O(fields + own chunks) work a rank.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "describe/input_file.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/status.hpp"
#include "verbs/tile_scratch.hpp"

namespace tailrace::verbs {

/// Shape of a box of complete chunks for reads of a few MiB. `chunk_shape` may be empty (no
/// chunks).
Shape box_shape_for(const Shape& shape, const Shape& chunk_shape, DType dtype);

/// Consecutive chunks in some order: positions [first, end).
struct ChunkPositions {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

/// Order in which to read the chunks of a grid from an array with other stored chunks. The order is
/// row-major over groups, then over the tiles of a group, then within a tile. If no stored chunk
/// spans several chunks of the grid, this is the order of the chunks' numbers.
class ChunkTiles {
 public:
  ChunkTiles() = default;  ///< An empty grid.
  /// @param stored_chunk  chunk shape of the array to read; empty: it is not stored in chunks.
  /// @param n_max  limit for the chunks of a tile; >= 1.
  ChunkTiles(ChunkGrid grid, const Shape& stored_chunk, std::uint64_t n_max = UINT64_MAX);

  const ChunkGrid& grid() const { return grid_; }
  const Shape& stored_chunk() const { return stored_chunk_; }
  std::uint64_t chunks_of_tile() const { return n_elements(tile_shape_); }
  std::uint64_t tiles_of_group() const { return n_elements(group_shape_) / chunks_of_tile(); }
  /// The chunk at a position of this order. Cost: O(dimensions).
  std::uint64_t chunk_at(std::uint64_t position) const;
  /// Position of a chunk in this order, by the chunk's coordinates in the grid.
  std::uint64_t position_of(const Shape& coordinates) const;
  /// All chunks of the group that contains the chunk at this position.
  ChunkPositions group_at(std::uint64_t position) const;
  /// The elements of chunks of one group, as boxes: one box around those of each tile, in order.
  std::vector<Box> tile_parts(const ChunkPositions& chunks) const;
  /// The box that starts at element `start` and contains at most `n_max` chunks: the chunk there
  /// and chunks that follow it in its tile. Clipped to the array.
  Box box_from(const Shape& start, std::uint64_t n_max) const;

 private:
  ChunkGrid grid_;
  Shape stored_chunk_;
  Shape n_chunks_;     ///< Chunks per dimension.
  Shape tile_shape_;   ///< Chunks per dimension of a tile.
  Shape group_shape_;  ///< Chunks per dimension of a group: complete tiles.
};

/// Reads boxes of arrays in the order of their tiles, and caches the boxes that it reads together.
/// One thread at a time.
class TileReader {
 public:
  /// @param bytes_max  limit for the cache, excluding the requested box. A scratch file adds
  /// pack_bytes().
  TileReader(InputFile& input, std::uint64_t bytes_max) : input_(&input), bytes_max_(bytes_max) {}
  std::uint64_t bytes_max() const { return bytes_max_; }
  /// Allow scratch files: from now on, groups of several tiles may be decoded once, into a scratch
  /// file.
  /// @param n_threads  number of threads that write and read it, including the caller.
  /// @param whole_bytes  size of one stored chunk, if memory was reserved to decode it.
  void use_scratch(ScratchOpener open, std::uint64_t n_threads, std::uint64_t whole_bytes = 0) {
    open_scratch_ = std::move(open);
    scratch_threads_ = n_threads;
    whole_bytes_ = whole_bytes;
  }
  /// Announce that these chunks of a field will be read, usually in order. Only announced chunks
  /// use scratch files.
  void expect(std::size_t field_index, const ChunkPositions& chunks);
  /// Memory that a scratch file needs in addition.
  static std::uint64_t pack_bytes(std::uint64_t bytes_max);

  /// Read one chunk of the tiles' grid, like InputFile::read().
  Status read(std::size_t field_index, const ChunkTiles& tiles, const Box& box,
              std::span<std::byte> values);
  /// Read any box, like InputFile::read(). Uses an existing scratch file but creates none.
  Status look(std::size_t field_index, const ChunkTiles& tiles, const Box& box,
              std::span<std::byte> values);
  /// True if a box is cached because it was read with others.
  bool holds(std::size_t field_index, const Box& box) const;
  /// Peak size of the cache.
  std::uint64_t peak_bytes() const { return peak_bytes_; }
  /// Bytes written to scratch files.
  std::uint64_t scratch_bytes() const { return scratch_bytes_; }
  /// Error that stopped the use of scratch files; OK if writing and reading them succeeded.
  const Status& scratch_failure() const { return scratch_failure_; }
  /// First error of creating a scratch file.
  const Status& scratch_refusal() const { return scratch_refusal_; }

 private:
  bool make_room(std::uint64_t n_bytes);
  bool in_scratch(std::size_t field_index, const Box& box);
  void begin_group(std::size_t field_index, const ChunkTiles& tiles, const Box& box,
                   std::uint64_t element_bytes);
  bool take_from_scratch(std::size_t field_index, const Box& box, std::span<std::byte> values,
                         std::uint64_t element_bytes);
  void drop_scratch(const Status& why);

  InputFile* input_;
  std::uint64_t bytes_max_;
  std::uint64_t peak_bytes_ = 0;
  std::size_t held_field_ = 0;
  std::optional<Box> held_;  ///< Box of held_field_ that `values_` contains.
  Buffer values_;
  std::uint64_t whole_bytes_ = 0;
  ScratchOpener open_scratch_;  ///< Empty: no scratch files.
  std::uint64_t scratch_threads_ = 1;
  std::multimap<std::size_t, ChunkPositions> expected_;
  std::size_t scratch_field_ = 0;
  std::optional<TileScratch> scratch_;  ///< Holds a part of scratch_field_.
  std::uint64_t scratch_bytes_ = 0;
  Status scratch_failure_;
  Status scratch_refusal_;
};

struct DealtField {
  std::uint64_t n_chunks = 0;
  std::uint64_t raw_bytes = 0;
};

/// Consecutive chunks of one field in the order of the deal: positions [first, end).
struct ChunkRun {
  std::size_t field_index = 0;
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

/// The runs of this rank, in field order. Over all ranks, every chunk is dealt exactly once.
std::vector<ChunkRun> deal_chunks(std::span<const DealtField> fields, int rank, int n_ranks);

}  // namespace tailrace::verbs
