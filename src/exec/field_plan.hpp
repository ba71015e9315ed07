// FieldPlan: everything that the lanes must know of one field in one step. PutRecord: source of its
// values. ChunkPatches, ChunkBeginnings, ChunkEdit: how chunks are completed or changed.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
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

// --- Puts: boxes of values in memory, or values that are pulled when they are needed.

/// Source of a pulled field's values. Called by one thread at a time. read() may run on another
/// thread while the rank's main thread waits. Errors name what the source reads, and where.
class BoxSource {
 public:
  virtual ~BoxSource() = default;
  /// Fill `values` with one box: row-major, box.n_elements() elements of the field's dtype.
  virtual Status read(const Box& box, std::span<std::byte> values) = 0;
  /// True if reading a box may take much longer than its size suggests, since the source reads
  /// more.
  virtual bool reads_more(const Box& /*box*/) { return false; }
  /// True if boxes need not be whole chunks. Then reads are on the main thread, within a collective
  /// call, and read_part() copies without a buffer of its own.
  virtual bool reads_parts() const { return false; }
  /// Fill the box `part` of values that are dense over `whole`. Only if reads_parts().
  virtual Status read_part(const Box& part, const Box& /*whole*/, std::byte* /*values*/) {
    return Status(Code::internal, "a source of whole chunks has no part " + box_text(part));
  }
  /// Same as read(), for sampling a few boxes before all are read.
  virtual Status look(const Box& box, std::span<std::byte> values) { return read(box, values); }
  /// Return a chunk that the source has already encoded, in a form that the field's codec decodes.
  /// It is written unchanged. std::nullopt: the source has none, and read() provides the values.
  /// Main thread.
  virtual Result<std::optional<EncodedBytes>> stored(const Box& chunk) {
    static_cast<void>(chunk);
    return std::optional<EncodedBytes>();
  }
};

/// One put: a box and its values. The values are row-major over the box, or over a larger array
/// that begins with the box's first element (a halo), or have any strides.
struct PutRecord {
  Box box;
  const std::byte* values = nullptr;  ///< The box's first value; nullptr: pulled from `source`.
  BoxSource* source = nullptr;
  Buffer copy;  ///< Owns the values if the caller requested a copy.
  std::shared_ptr<BoxSource> own_source = nullptr;  ///< Owns `source` if the caller does not.
  Shape held = {};  ///< Extents of the larger array; empty: those of the box.
  /// Bytes from value to value along each dimension, if no row-major array has the values; else
  /// empty.
  std::vector<std::int64_t> strides = {};

  /// Set `held` or `strides`. @param given  bytes per dimension; null: the values are dense.
  void set_strides(const std::int64_t* given, std::size_t element_bytes);
  /// The box of the row-major array; only without `strides`.
  Box held_box() const { return held.empty() ? box : Box{box.start, held}; }
  bool dense() const { return held.empty() && strides.empty(); }
  /// Copy `part` of the box into a dense row-major array that covers `to_box`. Thread-safe.
  void copy_to(const Box& part, const Box& to_box, std::byte* to, std::size_t element_bytes) const;
  /// A view of `part`, in place. With `strides` the part is copied into `buffer` first.
  /// @error out_of_memory
  Result<StridedValues> view(const Box& part, DType dtype, Buffer& buffer) const;
};

/// A part of a chunk that lies in one of this rank's puts.
struct LocalPart {
  std::size_t put_index = 0;
  Box box;
};

// --- ChunkBeginnings: chunks whose first values are in the file and stay unchanged.

class ChunkBeginnings {
 public:
  virtual ~ChunkBeginnings() = default;
  /// Copy the values in the file over the first values of a chunk. Thread-safe.
  /// @error io_error, codec_failed, corrupt  of the stored chunk.
  virtual Status complete(std::uint64_t chunk_index, Buffer& values) const = 0;
  /// True if chunks are encoded with arbitrary first values and joined afterwards; false if
  /// complete() runs before encoding.
  virtual bool joins() const = 0;
  /// Change an encoded chunk so that its first values decode, bit for bit, as the file has them.
  /// Thread-safe.
  /// @error unsupported  the chunk must be completed and stored without filters.
  /// @error io_error, corrupt, out_of_memory
  virtual Status join(std::uint64_t chunk_index, EncodedBytes& encoded) const = 0;
  /// Address where a chunk without filters stays; writing it changes none of its values in the
  /// file. std::nullopt: its layout chooses.
  virtual std::optional<std::uint64_t> fixed_address(std::uint64_t chunk_index) const = 0;
  /// Memory that one chunk needs in addition to that for encoding it.
  virtual std::uint64_t extra_bytes() const = 0;
};

// --- ChunkPatches: chunks that are assembled from many slabs, over the values in the file.
//
// Boxes cover a Writer's chunk exactly. A chunk of an ArrayFile is written in parts, by any ranks,
// and its other values stay as they are in the file. So neither the executor nor PieceExchange
// interprets such a chunk; its owner calls these functions. A FieldPlan with `patches` has jobs
// without local parts and without remote boxes, and its values are native numbers.

class ChunkPatches {
 public:
  struct Completed {
    bool store_raw = false;  ///< The chunk must be stored with every filter skipped.
    bool fresh = false;  ///< The file has no values of the chunk: its edges may be padded freely.
    /// Some values come from the stored chunk: encode with the codec's keeping_decoded().
    bool keep_decoded = false;
    /// Values that the stored chunk has, if the encoded one can be joined to it. Else null.
    std::unique_ptr<const ChunkBeginnings> beginnings;
  };
  virtual ~ChunkPatches() = default;

  /// Add this rank's slabs of a chunk and their values to a message for its owner. Called by a
  /// holder, on the main thread.
  virtual void add_pieces(std::uint64_t chunk_index, ByteWriter& writer) const = 0;
  /// Accept another rank's pieces, and copy them into the chunk's values, immediately or in
  /// complete(). Called by the owner, on the main thread.
  virtual void lay_pieces(std::uint64_t chunk_index, int peer, std::span<const std::byte> pieces,
                          Buffer& values) = 0;
  /// Copy this rank's own slabs into the values, and fill values that no rank has put from the
  /// file. Called by the owner, once per chunk. Thread-safe. @error io_error, codec_failed  of the
  /// stored chunk.
  virtual Result<Completed> complete(std::uint64_t chunk_index, Buffer& values) = 0;
  /// Note the bytes that will be written of a completed chunk. Thread-safe.
  virtual void encoded(std::uint64_t chunk_index, const EncodedBytes& chunk) = 0;
  /// Address where the chunk must stay; std::nullopt: its layout chooses.
  virtual std::optional<std::uint64_t> fixed_address(std::uint64_t chunk_index) const = 0;
  /// Memory that one chunk needs for its assembly, in addition to its values.
  virtual std::uint64_t extra_bytes() const = 0;
};

// --- ChunkEdit: replaces values that need not be kept, if that makes their chunk smaller.

class ChunkEdit {
 public:
  virtual ~ChunkEdit() = default;
  /// Alternatives for a chunk; the one with the smallest encoded result is used.
  struct Ways {
    std::size_t n = 0;
    bool unchanged = true;  ///< The unmodified chunk is one more alternative.
  };
  /// Return the alternatives for a chunk.
  /// @param n_values  of the chunk, without its padding.
  /// @param lossy  whether its codec is lossy.
  virtual Ways ways(std::uint64_t chunk_index, std::uint64_t n_values, bool lossy) const = 0;
  /// Apply one of the alternatives. Thread-safe.
  virtual void apply(std::uint64_t chunk_index, std::size_t way,
                     std::span<std::byte> values) const = 0;
  /// Upper limit of the memory that apply() needs for a chunk of `n_bytes`.
  virtual std::uint64_t working_bytes(std::uint64_t n_bytes) const = 0;
};

// --- FieldPlan: everything that the lanes must know of one field in one step.
//
// All but the puts is the same on every rank, and constant while the lanes run.

struct FieldPlan {
  std::size_t field_index = 0;  ///< The writer's number of the field, for traces.
  std::string path;
  DType dtype = DType::f32;
  std::uint64_t opaque_bytes = 0;  ///< Size of elements that are not numbers; 0: as `dtype`.
  ChunkGrid grid;
  std::span<const PutRecord> puts;  ///< Puts of this rank.
  ChunkPatches* patches = nullptr;  ///< Source of values instead of `puts`; null: `puts`.
  const ChunkBeginnings* beginnings = nullptr;  ///< Null: chunks are new.
  const ChunkEdit* edit = nullptr;  ///< Null: all values are kept. Only for one-dimensional fields.
  const Codec* codec = nullptr;
  const Layout* layout = nullptr;
  double absolute_bound = 0;   ///< Unit of the field; 0: exact, except in mode pw_rel.
  double pointwise_bound = 0;  ///< Mode pw_rel: fraction of each value; absolute_bound is 0 then.
  std::optional<double> fill_value;  ///< Kept exactly by codecs.
  /// Bytes of one element, for elements that no rank has put. Empty: zeros; not set: `fill_value`.
  std::optional<Bytes> stored_fill;
  bool verify = false;  ///< Decode every chunk after encoding and compare.
  /// A chunk that breaks its bound is stored unfiltered; false: it fails.
  bool fall_back_to_raw = true;
  bool allow_holes = false;
  bool swapped = false;  ///< The file has the other byte order; the codec swaps bytes.
  /// Fill edge chunks of growing datasets, whose pad may become visible.
  bool pad_with_fill = false;
  std::uint64_t base_address = 0;  ///< BaseFrom::shape only: address of the field's chunk 0.

  std::size_t element_bytes() const { return opaque_bytes > 0 ? opaque_bytes : dtype_bytes(dtype); }
  /// Uncompressed bytes of a full chunk.
  std::uint64_t chunk_bytes() const { return n_elements(grid.chunk_shape) * element_bytes(); }
  /// Box that a chunk's buffer covers: contiguous slabs end with the field, chunks do not.
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
  double max_error = 0;                 ///< Fraction of the value in mode pw_rel.
  std::uint64_t n_overflow_chunks = 0;  ///< Larger than the place reserved for them.
  std::uint64_t reserved_bytes = 0;     ///< Reserved before the sizes were known.
};

/// A chunk as the chunk index records it.
struct WrittenChunk {
  std::uint64_t field = 0;  ///< Index into the step's plans.
  std::uint64_t chunk_index = 0;
  std::uint64_t address = 0;
  std::uint64_t encoded_bytes = 0;
  std::uint64_t filter_mask = 0;
};

}  // namespace tailrace
