// Codec: encodes one chunk into bytes and decodes it, exactly as an HDF5 filter pipeline would.
//
// A Codec is made for one field: element type, chunk shape and error bound are fixed, and so are
// the filters in the dataset's header. Many threads may call encode() concurrently; a codec whose
// plug-in is not re-entrant locks internally. The interface is in core because both src/codec
// (built-in stages) and src/hdf5 (plug-ins) implement it.

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

/// One filter of an HDF5 pipeline, as recorded in the dataset's header.
struct FilterSpec {
  std::uint32_t filter_id = 0;             ///< HDF5's registered number: 1 deflate, 2 shuffle, ...
  std::uint32_t flags = 0;                 ///< 0 mandatory, 1 optional (H5Z_FLAG_OPTIONAL).
  std::vector<std::uint32_t> client_data;  ///< cd_values before the filter's set_local.
  std::vector<std::uint32_t> final_client_data;  ///< cd_values after set_local; passed to the
                                                 //   callback.
  std::string name;                              ///< Name of the filter class; recorded in the
                                                 //   file.
};

/// Parameters from which a codec is made.
struct CodecRequest {
  std::string name;  ///< "sz3", "zstd", "none", "id=32028", ...
  std::vector<std::pair<std::string, std::string>> settings;  ///< The codec's own keys: level, cd,
                                                              //   ...
  DType dtype = DType::f32;
  Shape chunk_shape;          ///< Rank 0 for a scalar.
  double absolute_bound = 0;  ///< Unit of the field; 0: exact.
  std::optional<double> fill_value =
      std::nullopt;  ///< Tailrace's lossy codecs preserve it bit for bit.
  /// True: the dataset's numbers have the other byte order; the codec must support that
  /// (CodecEntry::any_byte_order). Values are passed in this machine's order in any case.
  bool swapped = false;
  /// Mode pw_rel: |decoded - original| <= pointwise_bound * |original| for every finite value,
  /// zeros exactly; absolute_bound is then 0. 0: the other modes. A codec without this mode rejects
  /// it.
  double pointwise_bound = 0;
  /// Properties that decoded values preserve in addition to the bound; a codec that cannot do so
  /// rejects them. absolute_bound is already small enough for gradient and laplacian.
  Guards guards = {};
  /// Shape of the array that the chunks belong to, with the same number of axes, for guards of
  /// chunks. It is unlimited along time. Empty: unknown.
  Shape array_shape = {};
  /// Part of the chunk inside the array, from the chunk's start; empty: the complete chunk.
  Shape counted = {};
  double value_least = 0;  ///< Range of the field's finite, non-fill values, for guard=minmax.
  double value_greatest = 0;
  /// Bounds of guard=region for one chunk's values; the codec then serves only this chunk.
  RegionLevels tighter = {};
  /// Size of opaque elements: values are their bytes, along the last axis; 0: values are numbers.
  std::uint64_t element_bytes = 0;
};

/// The encoded form of one chunk.
struct EncodedBytes {
  Buffer buffer;
  std::uint32_t filter_mask = 0;  ///< Bit i set: filter i of the pipeline was skipped (HDF5).
};

/// Coarse views at the beginning of chunks, which can be read and decoded separately. A view has
/// every 2^level-th value along the axes, bit for bit as the complete chunk decodes them. A chunk
/// may lack a view. Thread-safe.
class CoarseViews {
 public:
  virtual ~CoarseViews() = default;
  /// Return the extents of a chunk's view at this level, 1 and above. Each is the chunk's extent
  /// over 2^level, rounded up, or the chunk's extent for axes that views do not thin out. Empty: no
  /// view has this level.
  virtual Shape view_shape(int level) const = 0;
  /// Return the number of bytes of a chunk's beginning that find() needs.
  virtual std::uint64_t head_bytes() const = 0;
  /// Return the position of the view's first byte in the chunk, and its length; nothing if this
  /// chunk has no view.
  virtual std::optional<std::pair<std::uint64_t, std::uint64_t>> find(
      std::span<const std::byte> beginning, int level) const = 0;
  /// Decode a view's bytes into its values, of shape view_shape(). @error codec_failed
  virtual Status decode(std::span<const std::byte> view, std::span<std::byte> values) const = 0;
};

/// Prefixes of chunks that decode to all values within a bound coarser than the chunk's own. A
/// chunk may lack prefixes. Thread-safe.
class BoundPrefixes {
 public:
  virtual ~BoundPrefixes() = default;
  /// Return the number of bytes of a chunk's beginning that find() needs.
  virtual std::uint64_t head_bytes() const = 0;
  /// Return the bound below which find() returns nothing for every chunk.
  virtual double least_bound() const = 0;
  /// Return the number of leading bytes that decode to all values within this absolute bound;
  /// nothing if all bytes are needed.
  virtual std::optional<std::uint64_t> find(std::span<const std::byte> beginning,
                                            double bound) const = 0;
  /// Decode a prefix to all of the chunk's values. @error codec_failed
  virtual Status decode(std::span<const std::byte> prefix, std::span<std::byte> values) const = 0;
};

/// Result of Codec::version() for Tailrace's own codecs.
inline constexpr std::string_view kBuiltInCodecVersion = "built in";

class Codec {
 public:
  virtual ~Codec() = default;

  /// Return the registered name, "sz3"; for messages, tables and the dataset's attribute.
  virtual std::string_view name() const = 0;
  /// Return the plug-in's file and version, or kBuiltInCodecVersion; recorded in the dataset's
  /// attributes.
  virtual std::string version() const = 0;
  /// Return the dataset's filter pipeline, in the order of encoding. Empty: no filters.
  virtual const std::vector<FilterSpec>& filters() const = 0;
  /// Return true if decoded values may differ from the originals.
  virtual bool lossy() const = 0;
  /// Return true if Tailrace's own code guarantees the bound; otherwise verify=on is the default.
  virtual bool keeps_bound_by_construction() const = 0;
  /// Return the upper limit of encode()'s output for `n_bytes` of input, for the memory budget.
  virtual std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const = 0;
  /// Return the memory that one encode() needs in addition to input and output, for the memory
  /// budget.
  virtual std::uint64_t working_bytes(std::uint64_t n_bytes) const = 0;

  /// Return the codec that encodes this chunk of the dataset, if chunks need different codecs. This
  /// codec decodes its output.
  virtual const Codec& of_chunk(std::uint64_t chunk_index) const {
    static_cast<void>(chunk_index);
    return *this;
  }

  /// Make a codec for one chunk of the grid, if encoding depends on the chunk's position. This
  /// codec decodes its output. Null: use of_chunk(). Not collective. Thread-safe.
  /// @error those of make_codec(), and those of reading a mask.
  virtual Result<std::unique_ptr<Codec>> made_for(const ChunkGrid& grid,
                                                  std::uint64_t chunk_index) const {
    static_cast<void>(grid);
    static_cast<void>(chunk_index);
    return std::unique_ptr<Codec>();
  }

  /// Return a codec for chunks that mix values which this codec has decoded with new ones: it
  /// leaves the former as they are. This codec decodes its output. Null: the codec has none, so
  /// decoded values must not be encoded again. Only for codecs without made_for() and of_chunk().
  virtual const Codec* keeping_decoded() const { return nullptr; }
  /// True if keeping_decoded() leaves these values as they are, bit by bit.
  virtual bool keeps_decoded(std::span<const std::byte> values) const {
    static_cast<void>(values);
    return false;
  }

  /// True if a lossy codec certainly decodes this value bit by bit: its fill value, perhaps NaN.
  virtual bool keeps_value(double value) const {
    static_cast<void>(value);
    return false;
  }

  /// Encode one complete chunk; `values` (chunk_shape, row-major, native order) is consumed.
  /// Not collective. Thread-safe.
  /// @error codec_failed  a mandatory filter failed.  @error out_of_memory
  virtual Result<EncodedBytes> encode(Buffer values) const = 0;
  /// Encode one complete chunk from the caller's memory, which is only read.
  virtual Result<EncodedBytes> encode_from(std::span<const std::byte> values) const;
  /// Return true if encode_from() does not copy the values, so that it costs no more than encode().
  virtual bool encodes_apart() const { return false; }

  /// Predict encode()'s result, without encoding, for a chunk that looks like `values`. These are
  /// usually the chunk itself, or a part of it if the rest is on another rank. Not collective.
  /// Thread-safe. Cost: a small part of encode()'s.
  /// @returns nothing if the codec has no model of its size: encode a sample then
  /// (chunk_estimator.hpp).
  virtual std::optional<Estimate> estimate(const StridedValues& values) const {
    static_cast<void>(values);
    return std::nullopt;
  }

  /// Decode; returns exactly the chunk's uncompressed bytes. Thread-safe.
  /// @error codec_failed  the bytes do not decode to a chunk of this shape, or their checksum is
  /// wrong.
  virtual Result<Buffer> decode(EncodedBytes encoded) const = 0;
  /// Decode into `values`, which has exactly the chunk's size and is undefined after a failure.
  /// Pipelines of Tailrace's own filters allocate nothing once a thread is warm.
  virtual Status decode_into(std::span<const std::byte> encoded, std::uint32_t filter_mask,
                             std::span<std::byte> values) const;
  /// Return the coarse views that chunks of filter mask 0 may begin with; null: they have none.
  virtual const CoarseViews* coarse_views() const { return nullptr; }
  /// Return the prefixes by which chunks of filter mask 0 may be read in part; null: they have
  /// none.
  virtual const BoundPrefixes* bound_prefixes() const { return nullptr; }
};

/// Base of codecs that wrap another one and override some calls; it has no size model.
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
  const Codec* keeping_decoded() const override { return inner_->keeping_decoded(); }
  bool keeps_decoded(std::span<const std::byte> values) const override {
    return inner_->keeps_decoded(values);
  }
  bool keeps_value(double value) const override { return inner_->keeps_value(value); }
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
