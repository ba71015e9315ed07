// Estimate: the predicted result of encoding one chunk.

#pragma once

namespace tailrace {

/// Predicted size of an encoded chunk, made without encoding the chunk.
struct Estimate {
  double encoded_bytes = 0;
  /// Encoded bytes without the lossless stage divided by encoded bytes with it (Liang et al. 2019,
  /// rho_ll / rho_l); 1 for codecs that have no lossless stage.
  double lossless_gain = 1;
  /// Standard deviation of encoded_bytes as a fraction of encoded_bytes; 0: unknown.
  double spread = 0;
};

}  // namespace tailrace
