// Codec: what turns one chunk into bytes and back, exactly as an HDF5 filter pipeline would.
//
// A Codec is made for one field: element type, chunk shape and error bound are fixed, and so are
// the filters that the dataset's header will name. encode() may be called from many threads at
// once; a codec whose plug-in is not re-entrant takes its own lock. The interface lives in core
// because both src/codec (built-in stages) and src/hdf5 (plug-ins) implement it.

#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/error_bound.hpp"
#include "trz/base/estimate.hpp"
#include "trz/base/guards.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// One filter of an HDF5 pipeline, as it must stand in the dataset's header.
struct FilterSpec {
  std::uint32_t filter_id = 0;             ///< HDF5's registered number: 1 deflate, 2 shuffle, ...
  std::uint32_t flags = 0;                 ///< 0 mandatory, 1 optional (H5Z_FLAG_OPTIONAL).
  std::vector<std::uint32_t> client_data;  ///< cd_values before the filter's set_local.
  std::vector<std::uint32_t> final_client_data;  ///< cd_values after it; what the callback gets.
  std::string name;                              ///< The filter class's name; goes into the file.
};

/// What a codec is made for.
struct CodecRequest {
  std::string name;  ///< "sz3", "zstd", "none", "id=32028", ...
  std::vector<std::pair<std::string, std::string>> settings;  ///< Its own keys: level, cd, ...
  DType dtype = DType::f32;
  Shape chunk_shape;          ///< Rank 0 for a scalar.
  double absolute_bound = 0;  ///< Unit of the field; 0: keep exactly.
  std::optional<double> fill_value =
      std::nullopt;  ///< Kept bit-exactly by lossy codecs of our own.
  /// The dataset's numbers have the other byte order, if the codec serves that
  /// (CodecEntry::any_byte_order); values are handed over in this machine's in any case.
  bool swapped = false;
  /// Mode pw_rel: |decoded - original| <= pointwise_bound * |original| for every finite value,
  /// zeros exactly; absolute_bound is 0 then. 0: the other modes. A codec that cannot do it refuses
  /// it.
  double pointwise_bound = 0;
  /// What decoded values keep besides; a codec that cannot do it refuses it. absolute_bound is
  /// small enough for gradient and laplacian already.
  Guards guards = {};
  /// The array whose chunks these are, of as many axes, for guards of chunks; without end along
  /// time. Empty: not known.
  Shape array_shape = {};
  /// Of the chunk what is the array's, from its start; empty: all of it.
  Shape counted = {};
  double value_least = 0;  ///< Of the field's finite, non-fill values, for guard=minmax.
  double value_greatest = 0;
  /// Of one chunk's values, which the codec is for then: what guard=region asks of them.
  RegionLevels tighter = {};
  /// Values are the bytes of elements of this size, along the last axis; 0: they are numbers.
  std::uint64_t element_bytes = 0;
};

/// The encoded form of one chunk.
struct EncodedBytes {
  Buffer buffer;
  std::uint32_t filter_mask = 0;  ///< Bit i set: filter i of the pipeline was skipped (HDF5).
};

/// Chunks that begin with a coarser view of themselves, to be read and decoded alone: every
/// 2^level-th value along the axes, the very ones that the whole chunk decodes to. Each chunk may
/// have one or not. Thread-safe.
class CoarseViews {
 public:
  virtual ~CoarseViews() = default;
  /// The extents of a chunk's view at this level, 1 and above: of each axis that of the chunk over
  /// 2^level, rounded up, or the chunk's own where views leave nothing out. Empty: there is none.
  virtual Shape view_shape(int level) const = 0;
  /// So many bytes of a chunk's beginning are all that find() looks at.
  virtual std::uint64_t head_bytes() const = 0;
  /// The first byte of the view within the chunk, and its length; nothing: this chunk has none.
  virtual std::optional<std::pair<std::uint64_t, std::uint64_t>> find(
      std::span<const std::byte> beginning, int level) const = 0;
  /// Decode a view's bytes into its values, as many as view_shape() says. @error codec_failed
  virtual Status decode(std::span<const std::byte> view, std::span<std::byte> values) const = 0;
};

/// Chunks whose first bytes decode to all of their values, within a coarser bound than the chunk's
/// own. Each chunk may be one or not. Thread-safe.
class BoundPrefixes {
 public:
  virtual ~BoundPrefixes() = default;
  /// So many bytes of a chunk's beginning are all that find() looks at.
  virtual std::uint64_t head_bytes() const = 0;
  /// Below this bound find() has nothing to say, of any chunk.
  virtual double least_bound() const = 0;
  /// How many first bytes give all values within this absolute bound; nothing: it takes them all.
  virtual std::optional<std::uint64_t> find(std::span<const std::byte> beginning,
                                            double bound) const = 0;
  /// Decode so many bytes to the whole chunk's values. @error codec_failed
  virtual Status decode(std::span<const std::byte> prefix, std::span<std::byte> values) const = 0;
};

/// Codec::version() of ours.
inline constexpr std::string_view built_in_codec_version = "built in";

class Codec {
 public:
  virtual ~Codec() = default;

  /// The registered name, "sz3"; for messages, tables and the dataset's attribute.
  virtual std::string_view name() const = 0;
  /// Plug-in file and version, or built_in_codec_version; recorded in the dataset's attributes.
  virtual std::string version() const = 0;
  /// The dataset's filter pipeline, in the order in which encoding applies it. Empty for none.
  virtual const std::vector<FilterSpec>& filters() const = 0;
  /// Whether decoded values may differ from the original ones.
  virtual bool lossy() const = 0;
  /// Whether we vouch for the bound (our own code); otherwise verify=on is the default.
  virtual bool keeps_bound_by_construction() const = 0;
  /// Upper limit of encode()'s output for `n_bytes` of input, for the memory budget.
  virtual std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const = 0;
  /// Memory that one encode() needs besides input and output, for the memory budget.
  virtual std::uint64_t working_bytes(std::uint64_t n_bytes) const = 0;

  /// What encodes this chunk of the dataset, where chunks are not alike within; this codec decodes
  /// what that makes.
  virtual const Codec& of_chunk(std::uint64_t chunk_index) const {
    static_cast<void>(chunk_index);
    return *this;
  }

  /// A codec for one chunk of the grid, where that depends on where the chunk lies; this codec
  /// decodes what it makes. Null: of_chunk() is for it. Not collective. Thread-safe.
  /// @error as make_codec(), and what cannot be read of a mask.
  virtual Result<std::unique_ptr<Codec>> made_for(const ChunkGrid& grid,
                                                  std::uint64_t chunk_index) const {
    static_cast<void>(grid);
    static_cast<void>(chunk_index);
    return std::unique_ptr<Codec>();
  }

  /// Encode one whole chunk; `values` (chunk_shape, row-major, native order) is consumed.
  /// Not collective. Thread-safe.
  /// @error codec_failed  the filter refused a mandatory stage.  @error out_of_memory
  virtual Result<EncodedBytes> encode(Buffer values) const = 0;
  /// The same of values that stay: their memory is the caller's, and is only read.
  virtual Result<EncodedBytes> encode_from(std::span<const std::byte> values) const;
  /// Whether encode_from() makes no copy of the values, so that it costs no more than encode().
  virtual bool encodes_apart() const { return false; }

  /// Predict what encode() would make of a chunk that looks like `values` (as a rule the chunk
  /// itself; a part of it where the rest is elsewhere) without encoding it.
  /// Not collective. Thread-safe. Cost: a small part of encode()'s.
  /// @returns nothing where the codec has no model of itself: encode a sample then
  /// (chunk_estimator.hpp).
  virtual std::optional<Estimate> estimate(const StridedValues& values) const {
    static_cast<void>(values);
    return std::nullopt;
  }

  /// Decode; returns exactly the chunk's uncompressed bytes. Thread-safe.
  /// @error codec_failed  the bytes do not decode to a chunk of this shape, or their checksum is
  /// wrong.
  virtual Result<Buffer> decode(EncodedBytes encoded) const = 0;
  /// The same into `values`, which takes exactly those bytes and is undefined after a failure.
  /// Pipelines of our own filters allocate nothing once a thread is warm.
  virtual Status decode_into(std::span<const std::byte> encoded, std::uint32_t filter_mask,
                             std::span<std::byte> values) const;
  /// The views that chunks of filter mask 0 may begin with; null: none does.
  virtual const CoarseViews* coarse_views() const { return nullptr; }
  /// How chunks of filter mask 0 may be read in part; null: none may.
  virtual const BoundPrefixes* bound_prefixes() const { return nullptr; }
};

/// Another codec, but for what a subclass does in a way of its own; without a model of itself.
class CodecOver : public Codec {
 public:
  explicit CodecOver(std::shared_ptr<const Codec> inner) : inner_(std::move(inner)) {}
  std::string_view name() const override { return inner_->name(); }
  std::string version() const override { return inner_->version(); }
  const std::vector<FilterSpec>& filters() const override { return inner_->filters(); }
  bool lossy() const override { return inner_->lossy(); }
  bool keeps_bound_by_construction() const override {
    return inner_->keeps_bound_by_construction();
  }
  std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const override {
    return inner_->encoded_bytes_max(n_bytes);
  }
  std::uint64_t working_bytes(std::uint64_t n_bytes) const override {
    return inner_->working_bytes(n_bytes);
  }
  Result<std::unique_ptr<Codec>> made_for(const ChunkGrid& grid,
                                          std::uint64_t chunk_index) const override {
    return inner_->made_for(grid, chunk_index);
  }
  Result<EncodedBytes> encode(Buffer values) const override {
    return inner_->encode(std::move(values));
  }
  Result<Buffer> decode(EncodedBytes encoded) const override {
    return inner_->decode(std::move(encoded));
  }

 protected:
  std::shared_ptr<const Codec> inner_;
};

}  // namespace tailrace
