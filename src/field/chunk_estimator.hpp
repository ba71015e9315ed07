// ChunkEstimator: what a codec would make of a chunk, from a sample of its values where they lie.
//
// A codec that has a model of itself (trz, none) is asked. SZ3 is judged by trz's model, since
// SZ3 itself is slow and far off on a sample. Any other codec is run on a gathered sample (Liang et
// al. 2019, V-C): scattered blocks, as a chunk of their own, encoded by a second instance of the
// codec that was made for the sample's shape; the size is scaled to the chunk. What such a sample
// gets wrong is alike for all chunks of a field, and a running calibration learns it
// (model/size_history.hpp).

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/codec.hpp"
#include "exec/field_plan.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Of one field and one codec. Immutable after make(); estimate() is thread-safe.
class ChunkEstimator {
 public:
  /// `codec` was made for `request` and must outlive the estimator.
  /// Not collective. @error as of make_codec, for the sample's shape.
  static Result<std::unique_ptr<ChunkEstimator>> make(const CodecRequest& request,
                                                      const Codec& codec,
                                                      const std::string& plugin_path);
  virtual ~ChunkEstimator() = default;

  /// Of a chunk of `chunk_bytes` uncompressed bytes (without the pad of an edge chunk, which costs
  /// next to nothing to encode) of which `values` are (a part of) the values.
  /// Where the codec refuses the sample, the chunk is taken to be stored unfiltered.
  /// @error out_of_memory
  virtual Result<Estimate> estimate(const StridedValues& values,
                                    std::uint64_t chunk_bytes) const = 0;
};

/// The largest part of a chunk that lies in one of this rank's puts, where it is in memory; nothing
/// if there is none (pulled from a source, or all of it on other ranks). Not collective.
std::optional<StridedValues> values_in_memory(const ChunkGrid& grid, std::uint64_t chunk_index,
                                              DType dtype, std::span<const PutRecord> puts,
                                              std::span<const LocalPart> parts);

}  // namespace tailrace
