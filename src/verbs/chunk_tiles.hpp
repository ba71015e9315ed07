// In what order, and by which rank, the chunks of arrays are worked on: tiles, and the deal.
//
// Tiles are for reading an array in boxes that its stored chunks do not fit.
// A stored chunk that many boxes cross would be decoded for each of them, and the boxes between two
// that share it may need more memory than there is. So boxes are taken tile by tile (a tile: as
// many boxes as one stored chunk reaches over in each dimension), and as many boxes of a tile as
// memory allows are read as one. A tile that memory has no room for is cut into as few even boxes
// as can be, which are tiles then, and together a group: each of them has its stored chunks decoded
// once more, or all of a group are decoded once, into a scratch file (tile_scratch.hpp).
//
// The deal needs no communication. Every field is spread evenly: rank r takes the r-th run of
// n_chunks / n_ranks chunks, so that each rank meets every kind of data and no rank gets all of the
// slow field. What is left over (fewer chunks than ranks, per field) is dealt contiguously by bytes
// over all fields' left-overs. Both are closed formulas: O(fields + own chunks) work a rank.

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

/// A whole number of chunks that makes reads of some MiB; `chunk_shape` may be empty (no chunks).
Shape box_shape_for(const Shape& shape, const Shape& chunk_shape, DType dtype);

/// Consecutive chunks in some order: positions [first, end).
struct ChunkPositions {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

/// The order in which the chunks of a grid are best read from an array stored in other chunks:
/// row-major over groups, over the tiles of each, and within each tile. Where no stored chunk
/// reaches over several chunks of the grid, that is the order of their numbers.
class ChunkTiles {
 public:
  ChunkTiles() = default;  ///< Of nothing.
  /// @param stored_chunk  of the array that is read; empty: it is not stored in chunks.
  /// @param n_max         chunks of a tile at most; >= 1.
  ChunkTiles(ChunkGrid grid, const Shape& stored_chunk, std::uint64_t n_max = UINT64_MAX);

  const ChunkGrid& grid() const { return grid_; }
  const Shape& stored_chunk() const { return stored_chunk_; }
  std::uint64_t chunks_of_tile() const { return n_elements(tile_shape_); }
  std::uint64_t tiles_of_group() const { return n_elements(group_shape_) / chunks_of_tile(); }
  /// The chunk at a position of this order. Cost: O(dimensions).
  std::uint64_t chunk_at(std::uint64_t position) const;
  /// ... and back, by its coordinates in the grid.
  std::uint64_t position_of(const Shape& coordinates) const;
  /// All chunks of the group that holds the chunk at this position.
  ChunkPositions group_at(std::uint64_t position) const;
  /// The elements of these chunks of one group: a box around those of each tile, in order.
  std::vector<Box> tile_parts(const ChunkPositions& chunks) const;
  /// The chunk that begins at these elements, with as many of those that follow it in its tile as
  /// make up a box of at most `n_max` chunks; cut at the array's edge.
  Box box_from(const Shape& start, std::uint64_t n_max) const;

 private:
  ChunkGrid grid_;
  Shape stored_chunk_;
  Shape n_chunks_;     ///< Per dimension.
  Shape tile_shape_;   ///< In chunks.
  Shape group_shape_;  ///< In chunks: whole tiles.
};

/// Reads the boxes of arrays one after another in the order of their tiles. One thread at a time.
class TileReader {
 public:
  /// @param bytes_max  that may be held beyond the box that is asked for; with a scratch a little
  /// more, see pack_bytes().
  TileReader(InputFile& input, std::uint64_t bytes_max) : input_(&input), bytes_max_(bytes_max) {}
  std::uint64_t bytes_max() const { return bytes_max_; }
  /// From now on groups of several tiles may be decoded once, into a scratch file.
  /// @param n_threads    that write and read it, the caller's among them.
  /// @param whole_bytes  of one stored chunk, where memory has been set aside to decode it.
  void use_scratch(ScratchOpener open, std::uint64_t n_threads, std::uint64_t whole_bytes = 0) {
    open_scratch_ = std::move(open);
    scratch_threads_ = n_threads;
    whole_bytes_ = whole_bytes;
  }
  /// These chunks of a field are going to be read, as a rule in order. Only such are scratched.
  void expect(std::size_t field_index, const ChunkPositions& chunks);
  /// What a scratch takes beside.
  static std::uint64_t pack_bytes(std::uint64_t bytes_max);

  /// InputFile::read() of one chunk of the tiles' grid.
  Status read(std::size_t field_index, const ChunkTiles& tiles, const Box& box,
              std::span<std::byte> values);
  /// The same of any box, here and there: no scratch is made for it.
  Status look(std::size_t field_index, const ChunkTiles& tiles, const Box& box,
              std::span<std::byte> values);
  /// Whether a box is in memory, since it was read with others.
  bool holds(std::size_t field_index, const Box& box) const;
  /// The most bytes that were held so.
  std::uint64_t peak_bytes() const { return peak_bytes_; }
  /// That were written to scratch files.
  std::uint64_t scratch_bytes() const { return scratch_bytes_; }
  /// Why there have been no more of them: what writing or reading one said.
  const Status& scratch_failure() const { return scratch_failure_; }
  /// Why the first of those that could not be made could not.
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
  std::optional<Box> held_;  ///< What `values_` holds of that field.
  Buffer values_;
  std::uint64_t whole_bytes_ = 0;
  ScratchOpener open_scratch_;  ///< Empty: without.
  std::uint64_t scratch_threads_ = 1;
  std::multimap<std::size_t, ChunkPositions> expected_;
  std::size_t scratch_field_ = 0;
  std::optional<TileScratch> scratch_;  ///< Of a part of that field.
  std::uint64_t scratch_bytes_ = 0;
  Status scratch_failure_;
  Status scratch_refusal_;
};

struct DealtField {
  std::uint64_t n_chunks = 0;
  std::uint64_t raw_bytes = 0;
};

/// Consecutive chunks of one field in the order in which they are dealt: positions [first, end).
struct ChunkRun {
  std::size_t field_index = 0;
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

/// The runs of this rank, in field order. Over all ranks, every chunk is dealt exactly once.
std::vector<ChunkRun> deal_chunks(std::span<const DealtField> fields, int rank, int n_ranks);

}  // namespace tailrace::verbs
