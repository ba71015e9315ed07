// ChunkEstimator: forecasts the encoded size of a chunk from a sample of its values, read in place.
//
// A codec with a model of itself (trz, none) makes the estimate. SZ3 is estimated by trz's model,
// because SZ3 itself is slow and inaccurate on a sample. Any other codec is run on a gathered
// sample (Liang et al. 2019, V-C). Scattered blocks form a chunk, which a second instance of the
// codec, made for the sample's shape, encodes; the size is scaled to the chunk. The error of such a
// sample is similar for all chunks of a field; a running calibration learns it
// (model/size_history.hpp).

#pragma once

#include <memory>
#include <optional>
#include <string>

#include "core/codec.hpp"
#include "exec/field_plan.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Estimator for one field and one codec. Immutable after make(); estimate() is thread-safe.
class ChunkEstimator {
 public:
  /// Make an estimator. `codec` was made for `request` and must outlive the estimator. Not
  /// collective. @error those of make_codec, for the sample's shape.
  static Result<std::unique_ptr<ChunkEstimator>> make(const CodecRequest& request,
                                                      const Codec& codec,
                                                      const std::string& plugin_path);
  virtual ~ChunkEstimator() = default;

  /// Estimate a chunk of `chunk_bytes` uncompressed bytes, from `values`: the chunk's values or a
  /// part of them. The padding of an edge chunk does not count, because encoding it costs next to
  /// nothing. If the codec refuses the sample, the chunk is assumed to be stored unfiltered.
  /// @error out_of_memory
  virtual Result<Estimate> estimate(const StridedValues& values,
                                    std::uint64_t chunk_bytes) const = 0;
};

/// The largest part of a chunk that is in memory in one of this rank's puts. Nothing if all of it
/// is pulled from a source, or on other ranks. Not collective.
/// @param buffer  holds the values if they must be copied (PutRecord::view()).
/// @error out_of_memory
Result<std::optional<StridedValues>> values_in_memory(const ChunkGrid& grid,
                                                      std::uint64_t chunk_index, DType dtype,
                                                      std::span<const PutRecord> puts,
                                                      std::span<const LocalPart> parts,
                                                      Buffer& buffer);

}  // namespace tailrace
