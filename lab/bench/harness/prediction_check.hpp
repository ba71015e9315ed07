// Predicted against measured size and encode time of each chunk.
//
// The engine's estimator (chunk_estimator.hpp) predicts sizes; eq. 1 of Jin et al. 2022 with the
// profile's curve predicts times. Each chunk is then encoded for its true bytes and thread CPU
// time.

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
  double predicted_encode_s = 0;  ///< 0: the profile lacks the codec.
  double encode_s = 0;            ///< Thread CPU time.
  double sample_s = 0;            ///< Thread CPU time of the prediction.
};

/// Check of one codec under one bound.
struct PredictionCheck {
  std::string codec;
  ErrorBound bound;
  std::vector<ChunkCheck> chunks;  ///< Chunks of all ranks on rank 0; empty elsewhere.

  double mean_size_error() const;  ///< Mean of |predicted - encoded| / encoded.
  double size_error_percentile_95() const;
  double sampling_share() const;  ///< Sampling time divided by encode time.
};

/// Check --codec (trz if that is auto) on all chunks of the workload. Collective.
/// @error  like the codec and its estimator
Result<PredictionCheck> check_predictions(const BenchContext& context,
                                          const MachineProfile& profile);

}  // namespace tailrace::bench
