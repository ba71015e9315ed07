// Estimate: the predicted result of encoding one chunk.

#pragma once

namespace tailrace {

/// Prediction of what a codec makes of a chunk, without encoding it.
struct Estimate {
  double encoded_bytes = 0;
  /// Encoded bytes without the lossless stage over those with it (Liang et al. 2019, rho_ll /
  /// rho_l); 1 for codecs that have no such stage.
  double lossless_gain = 1;
  /// One standard deviation of encoded_bytes as a fraction of it; 0: not known.
  double spread = 0;
};

}  // namespace tailrace
