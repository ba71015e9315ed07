// FieldPlan: all that the lanes must know of one field in one step. PutRecord: where its values
// come from. ChunkPatches: chunks whose values are laid together.

#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/byte_stream.hpp"
#include "core/codec.hpp"
#include "layout/layout.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- Puts: boxes of values that are in memory, or are pulled when they are needed.

/// Where a pulled field's values come from; one thread at a time calls, read() perhaps another than
/// the rank's main thread, which waits.
class BoxSource {
 public:
  virtual ~BoxSource() = default;
  /// Fill `values` (row-major, box.n_elements() elements of the field's dtype) with one box.
  virtual Status read(const Box& box, std::span<std::byte> values) = 0;
  /// Whether to read a box may take much longer than its size tells, since more is read with it.
  virtual bool reads_more(const Box& /*box*/) { return false; }
  /// The same, for a look at some boxes here and there before all are read.
  virtual Status look(const Box& box, std::span<std::byte> values) { return read(box, values); }
  /// A chunk that the source has encoded already, as the field's codec decodes it; it is written as
  /// it is. Nothing: there is none, and read() gives its values. Main thread, as read().
  virtual Result<std::optional<EncodedBytes>> stored(const Box& chunk) {
    static_cast<void>(chunk);
    return std::optional<EncodedBytes>();
  }
};

/// One put: a box and where its values are.
struct PutRecord {
  Box box;
  const std::byte* values = nullptr;  ///< Row-major over `box`; nullptr if pulled from `source`.
  BoxSource* source = nullptr;
  Buffer copy;  ///< Holds the values if the caller asked for a copy.
};

/// A part of a chunk that lies in one of this rank's puts.
struct LocalPart {
  std::size_t put_index = 0;
  Box box;
};

// --- ChunkPatches: chunks whose values are laid together from many slabs, over what the file
// holds.
//
// A Writer's chunk is covered by boxes exactly; a chunk of an ArrayFile is touched here and there,
// by any ranks, and the rest of it stays as it was. So neither the executor nor the pieces that
// travel between ranks look into such a chunk: its owner asks here. A FieldPlan with `patches` has
// jobs without local parts and without remote boxes, and its values are native numbers.

class ChunkPatches {
 public:
  struct Completed {
    bool store_raw = false;  ///< To be stored with every filter skipped.
    bool fresh = false;      ///< The file holds nothing of it: edges may be padded as one likes.
  };
  virtual ~ChunkPatches() = default;

  /// As a holder: add this rank's slabs of a chunk and their values to a message for its owner.
  /// Main thread.
  virtual void add_pieces(std::uint64_t chunk_index, ByteWriter& writer) const = 0;
  /// As the owner: take another rank's pieces, and lay them into the chunk's values, now or when it
  /// is completed. Main thread.
  virtual void lay_pieces(std::uint64_t chunk_index, int peer, std::span<const std::byte> pieces,
                          Buffer& values) = 0;
  /// As the owner: lay this rank's own slabs, and fill what nobody has put by what the file holds.
  /// Once per chunk. Thread-safe. @error io_error, codec_failed  of what the file holds.
  virtual Result<Completed> complete(std::uint64_t chunk_index, Buffer& values) = 0;
  /// The place where the chunk lies and must stay; nothing: it goes where its layout says.
  virtual std::optional<std::uint64_t> fixed_address(std::uint64_t chunk_index) const = 0;
  /// Memory that one chunk takes besides its values while it is laid together.
  virtual std::uint64_t extra_bytes() const = 0;
};

// --- ChunkBeginnings: chunks of which the file holds the first values, which stay as they are.

class ChunkBeginnings {
 public:
  virtual ~ChunkBeginnings() = default;
  /// Lay what the file holds over the first of a chunk's values. Thread-safe.
  /// @error io_error, codec_failed, corrupt  of what the file holds.
  virtual Status complete(std::uint64_t chunk_index, Buffer& values) const = 0;
  /// Whether chunks are encoded with anything else there, and then joined; else they are completed
  /// before.
  virtual bool joins() const = 0;
  /// Let the first values decode, to the bit, as the file has them, from what the chunk has been
  /// encoded to. Thread-safe.
  /// @error unsupported  it must be completed and stored without filters.
  /// @error io_error, corrupt, out_of_memory
  virtual Status join(std::uint64_t chunk_index, EncodedBytes& encoded) const = 0;
  /// The place where the chunk lies and stays, since it has no filters: nothing of what is there
  /// changes. Nothing: it goes where its layout says.
  virtual std::optional<std::uint64_t> fixed_address(std::uint64_t chunk_index) const = 0;
  /// Memory that one chunk takes besides what encoding it takes.
  virtual std::uint64_t extra_bytes() const = 0;
};

// --- ChunkEdit: values that need not be kept become others where that makes their chunk smaller.

class ChunkEdit {
 public:
  virtual ~ChunkEdit() = default;
  /// Ways to change a chunk, of which the one is taken that comes out smallest.
  struct Ways {
    std::size_t n = 0;
    bool unchanged = true;  ///< To leave it as it is is one more.
  };
  /// @param n_values  of the chunk, without what pads it.  @param lossy  as its codec is.
  virtual Ways ways(std::uint64_t chunk_index, std::uint64_t n_values, bool lossy) const = 0;
  /// Change it in one of these ways. Thread-safe.
  virtual void apply(std::uint64_t chunk_index, std::size_t way,
                     std::span<std::byte> values) const = 0;
  /// The most memory that this takes for a chunk of `n_bytes`.
  virtual std::uint64_t working_bytes(std::uint64_t n_bytes) const = 0;
};

// --- FieldPlan: all that the lanes must know of one field in one step. The same on every rank but
// for the puts, and constant while the lanes run.

struct FieldPlan {
  std::size_t field_index = 0;  ///< In the writer's numbering, for traces.
  std::string path;
  DType dtype = DType::f32;
  ChunkGrid grid;
  std::span<const PutRecord> puts;  ///< This rank's.
  ChunkPatches* patches = nullptr;  ///< Where values come from instead; null: from `puts`.
  const ChunkBeginnings* beginnings = nullptr;  ///< Null: chunks are new.
  const ChunkEdit* edit = nullptr;  ///< Null: all values are kept. Fields of one dimension have it.
  const Codec* codec = nullptr;
  const Layout* layout = nullptr;
  double absolute_bound = 0;   ///< Unit of the field; 0: exact, but for mode pw_rel.
  double pointwise_bound = 0;  ///< Mode pw_rel: fraction of each value; absolute_bound is 0 then.
  std::optional<double> fill_value;  ///< Kept exactly by codecs.
  /// Bytes of one element, for elements that no rank has put; empty: zeros. Default: `fill_value`.
  std::optional<Bytes> stored_fill;
  bool verify = false;           ///< Decode every chunk after encoding and compare.
  bool fall_back_to_raw = true;  ///< A chunk that breaks its bound is stored unfiltered, or fails.
  bool allow_holes = false;
  bool swapped = false;            ///< The file has the other byte order; the codec turns values.
  bool pad_with_fill = false;      ///< Edge chunks of growing datasets: the pad may become visible.
  std::uint64_t base_address = 0;  ///< BaseFrom::shape only: where the field's chunk 0 lies.

  std::size_t element_bytes() const { return dtype_bytes(dtype); }
  /// Uncompressed bytes of a whole chunk.
  std::uint64_t chunk_bytes() const { return n_elements(grid.chunk_shape) * element_bytes(); }
  /// The box that a chunk's buffer covers: contiguous slabs end with the field, chunks do not.
  Box values_box(std::uint64_t chunk_index) const {
    return layout->contiguous() ? grid.clipped_box(chunk_index) : grid.full_box(chunk_index);
  }
};

/// Sums and maxima over the chunks that this rank encoded of one field.
struct FieldTally {
  std::uint64_t n_chunks = 0;
  std::uint64_t n_raw_chunks = 0;
  std::uint64_t encoded_bytes = 0;
  double encode_s = 0;
  double verify_s = 0;
  double max_error = 0;                 ///< Under pw_rel as a fraction of the value.
  std::uint64_t n_overflow_chunks = 0;  ///< Larger than the place kept for them.
  std::uint64_t reserved_bytes = 0;     ///< Set aside before the sizes were known.
};

/// A chunk as the chunk index will know it.
struct WrittenChunk {
  std::uint64_t field = 0;  ///< Index into the step's plans.
  std::uint64_t chunk_index = 0;
  std::uint64_t address = 0;
  std::uint64_t encoded_bytes = 0;
  std::uint64_t filter_mask = 0;
};

}  // namespace tailrace
