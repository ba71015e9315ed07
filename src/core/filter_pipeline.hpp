// FilterPipeline: filter stages in a row, with the semantics of HDF5's own pipeline (H5Z.c).
//
// Encoding applies the stages first to last. A stage that fails leaves the bytes as they were: if
// it is optional its bit in the filter mask is set and the next stage goes on, if it is mandatory
// the chunk fails. Decoding goes last to first and skips the stages whose bit is set. What a stage
// is made of (deflate, a plug-in's callback) is its own affair. In core because src/codec and
// src/container both build pipelines.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/codec.hpp"

namespace tailrace {

/// One filter. Stages are immutable after they are made; encode and decode are thread-safe.
class FilterStage {
 public:
  virtual ~FilterStage() = default;

  /// How the filter stands in the dataset's header.
  virtual const FilterSpec& spec() const = 0;
  /// Upper limit of encode()'s output for `n_bytes` of input.
  virtual std::uint64_t encoded_bytes_max(std::uint64_t n_bytes) const = 0;
  /// Memory that one encode() needs besides its input.
  virtual std::uint64_t working_bytes(std::uint64_t n_bytes) const = 0;

  /// Replace `bytes` by their encoded form. On failure `bytes` is unchanged, or empty (its memory
  /// gone) where a callback has freed it. @error codec_failed, out_of_memory
  virtual Status encode(Buffer& bytes) const = 0;
  /// Replace `bytes` by what encode() was given, which was `decoded_bytes` long.
  /// @error codec_failed  they do not decode to that length.  @error out_of_memory
  virtual Status decode(Buffer& bytes, std::uint64_t decoded_bytes) const = 0;
  /// As Codec::estimate, for a stage that stands alone.
  virtual std::optional<Estimate> estimate(const StridedValues& values) const {
    static_cast<void>(values);
    return std::nullopt;
  }
};

/// HDF5's shuffle (filter 2) for elements of this size, as H5Pset_shuffle defines it: optional.
std::unique_ptr<FilterStage> make_shuffle_stage(std::size_t element_bytes);

/// What a pipeline codec says about itself.
struct PipelineTraits {
  std::string name;
  std::string version = "built in";
  bool lossy = false;
  bool keeps_bound_by_construction = true;
};

/// A codec made of stages in encoding order. All stages but the last must keep the length of their
/// input, as shuffle does; decoding relies on it.
std::unique_ptr<Codec> make_pipeline_codec(PipelineTraits traits, const CodecRequest& request,
                                           std::vector<std::unique_ptr<FilterStage>> stages);

}  // namespace tailrace
