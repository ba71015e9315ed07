// JobForecast: what a rank expects of one of its chunks; from it come reservations and the order.

#pragma once

#include <optional>

namespace tailrace {

struct JobForecast {
  double encoded_bytes = 0;
  double deviation_bytes = 0;           ///< One standard deviation; 0: not known.
  std::optional<double> sampled_bytes;  ///< The Estimate behind it, for the running calibration.
  double encode_s = 0;                  ///< Of one thread, verification included.
  double write_s = 0;
};

}  // namespace tailrace
