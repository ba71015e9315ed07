// Predicted against measured: what sampling says each chunk will weigh and take, and what it does.
//
// Sizes by the engine's own estimator (chunk_estimator.hpp), times by eq. 1 of Jin et al. 2022 with
// the profile's curve; then each chunk is encoded, and its bytes and thread CPU time are the truth.

#pragma once

#include <string>
#include <vector>

#include "method.hpp"
#include "model/machine_profile.hpp"

namespace tailrace::bench {

struct ChunkCheck {
  std::size_t field = 0;
  double predicted_bytes = 0;
  double encoded_bytes = 0;
  double predicted_encode_s = 0;  ///< 0: the profile does not know the codec.
  double encode_s = 0;            ///< Thread CPU time.
  double sample_s = 0;            ///< Thread CPU time of the prediction.
};

/// One codec under one bound, this rank's chunks and then all ranks'.
struct PredictionCheck {
  std::string codec;
  ErrorBound bound;
  std::vector<ChunkCheck> chunks;  ///< Of all ranks, at rank 0; empty elsewhere.

  double mean_size_error() const;  ///< Of |predicted - encoded| / encoded.
  double size_error_percentile_95() const;
  double sampling_share() const;  ///< Sampling time over encode time.
};

/// Check --codec (trz where that is auto) on all chunks of the workload. Collective.
/// @error as of the codec and its estimator.
Result<PredictionCheck> check_predictions(const BenchContext& context,
                                          const MachineProfile& profile);

}  // namespace tailrace::bench
