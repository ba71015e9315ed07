// Recorded iterations for the simulator (lab/simulate): what the ranks of a real run did, as JSON
// and back. `lab.record=` writes them.
//
//   {"format": "tailrace-iterations", "version": 1, "ranks_per_node": 2,
//    "ranks": [{"iterations": [{"iteration_s": 4.1, "main": [[0.1, 0.5], ...], "io": [...],
//                               "chunks": [[raw_bytes, encoded_bytes, encode_s, write_s], ...],
//                               "makespan_s": 3.9}]}]}
//
// Times are seconds since the iteration began; "makespan_s", the end of the rank's last write, may
// be missing and is what a replay is compared with. lab/simulate/README.md explains them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/flow_shop.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// One measured iteration of a rank, without the delays by output where these are known.
struct RecordedRankIteration {
  FlowShop seen;  ///< Obstacles, iteration_s, and each chunk's encode and write time.
  std::vector<std::uint64_t> raw_bytes;  ///< Indexed by chunk.
  std::vector<std::uint64_t> encoded_bytes;
  /// When the rank's last write really ended; 0: not known. A replay does not look at it.
  double makespan_s = 0;
};

struct Recording {
  std::size_t ranks_per_node = 1;
  /// Indexed by rank, then by iteration. All ranks have the same number of iterations, at least
  /// two. A rank has the same number of chunks in each.
  std::vector<std::vector<RecordedRankIteration>> ranks;
};

/// @error corrupt  names the rank, the iteration and what was expected.
Result<Recording> parse_recording(std::string_view text);
std::string recording_text(const Recording& recording);

}  // namespace tailrace
