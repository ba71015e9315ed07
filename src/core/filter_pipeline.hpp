// FilterPipeline: a sequence of filter stages with the semantics of HDF5's pipeline (H5Z.c). It
// serves chunks that are written, and those that are read, copied or completed
// (hdf5/stored_codec.hpp).
//
// Encoding applies the stages first to last. A stage that fails leaves the bytes unchanged. If it
// is optional, its bit in the filter mask is set and the next stage continues; if it is mandatory,
// the chunk fails. Decoding goes last to first and skips the stages whose bit is set. Each stage
// has its own implementation (deflate, a plug-in's callback). In core because src/codec and
// src/hdf5 both make stages.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/codec.hpp"

namespace tailrace {

/// H5Z_FLAG_OPTIONAL.
inline constexpr std::uint32_t kOptionalFilter = 1;

class OwnStage;

/// One filter. Stages are immutable; encode and decode are thread-safe.
class FilterStage {
 public:
  /// @param spec  the filter's entry in the dataset's header.
  explicit FilterStage(FilterSpec spec) : spec_(std::move(spec)) {}
  virtual ~FilterStage() = default;

  const FilterSpec& spec() const { return spec_; }
  bool optional() const { return (spec_.flags & kOptionalFilter) != 0; }
  /// Upper limit of encode()'s output for `n_bytes` of input.
  virtual std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const = 0;
  /// Return the upper limit of the output for `n_bytes` of input when another program has encoded
  /// it.
  virtual std::uint64_t stored_bytes_max(std::uint64_t n_bytes) const {
    return encoded_bytes_max(n_bytes);
  }
  /// Return the memory that one encode() needs in addition to its input.
  virtual std::uint64_t working_bytes(std::uint64_t n_bytes) const {
    return encoded_bytes_max(n_bytes);
  }
  /// Return true if decoded bytes may differ from the originals; also if that is unknown.
  virtual bool lossy() const { return false; }
  /// Return this stage as one of Tailrace's own; null if it is not.
  virtual const OwnStage* own() const { return nullptr; }

  /// Replace `bytes` by their encoded form. On failure `bytes` is unchanged, or empty if a callback
  /// has freed its memory. @error codec_failed, out_of_memory
  virtual Status encode(Buffer& bytes) const = 0;
  /// Replace `bytes` by the input of encode(), which had at most `most_bytes` bytes.
  /// @error codec_failed  the bytes do not decode to that.  @error out_of_memory
  virtual Status decode(Buffer& bytes, std::uint64_t most_bytes) const = 0;
  /// Decode into existing memory. @returns the length.
  virtual Result<std::size_t> decode_into(std::span<const std::byte> encoded,
                                          std::span<std::byte> to) const;
  /// Forms of Codec::coarse_views() and Codec::bound_prefixes() for a pipeline of this stage only.
  virtual const CoarseViews* coarse_views() const { return nullptr; }
  virtual const BoundPrefixes* bound_prefixes() const { return nullptr; }
  /// Form of Codec::keeps_value() for a pipeline of this stage only.
  virtual bool keeps_value(double value) const {
    static_cast<void>(value);
    return false;
  }
  /// Form of Codec::estimate() for a pipeline of this stage only.
  virtual std::optional<Estimate> estimate(const StridedValues& values) const {
    static_cast<void>(values);
    return std::nullopt;
  }

 protected:
  Status no_memory(std::uint64_t n_bytes) const;
  Status failed(const std::string& why) const;

 private:
  FilterSpec spec_;
};

/// A stage of Tailrace: from memory to memory, allocating nothing once the thread is warm.
class OwnStage : public FilterStage {
 public:
  using FilterStage::FilterStage;
  /// Encode into `to`, which has encoded_bytes_max() bytes. @returns the length.
  virtual Result<std::size_t> encode_into(std::span<const std::byte> values,
                                          std::span<std::byte> to) const = 0;
  Result<std::size_t> decode_into(std::span<const std::byte> encoded,
                                  std::span<std::byte> to) const override = 0;
  const OwnStage* own() const final { return this; }
  /// Encode values that stay unchanged into a new block, otherwise like encode().
  Status encode_apart(std::span<const std::byte> values, Buffer& encoded) const;
  Status encode(Buffer& bytes) const final;
  Status decode(Buffer& bytes, std::uint64_t most_bytes) const final;
};

/// HDF5's shuffle (filter 2) for elements of this size, as H5Pset_shuffle defines it: optional.
std::unique_ptr<FilterStage> make_shuffle_stage(std::size_t element_bytes);
/// Make the shuffle stage of a dataset's header; see CodecEntry::stage. @error corrupt  elements of
/// 0 bytes.
Result<std::unique_ptr<FilterStage>> stored_shuffle_stage(const FilterSpec& stored,
                                                          std::uint64_t element_bytes,
                                                          std::uint64_t chunk_bytes);

/// Properties that a pipeline codec reports.
struct PipelineTraits {
  std::string name;
  std::string version{kBuiltInCodecVersion};
  bool lossy = false;
  bool keeps_bound_by_construction = true;
};

/// HDF5's limit on filters (H5Z_MAX_NFILTERS): one bit of the mask each.
inline constexpr std::size_t filters_max = 32;

/// A codec made of stages in encoding order, filters_max at most, for chunks of `chunk_bytes`.
std::unique_ptr<Codec> make_pipeline_codec(PipelineTraits traits, std::uint64_t chunk_bytes,
                                           std::vector<std::unique_ptr<FilterStage>> stages);
/// Make a codec for chunks of the request's type and shape.
std::unique_ptr<Codec> make_pipeline_codec(PipelineTraits traits, const CodecRequest& request,
                                           std::vector<std::unique_ptr<FilterStage>> stages);

}  // namespace tailrace
