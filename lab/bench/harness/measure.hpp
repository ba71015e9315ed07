// Measurement: warm up and check every method, then run the methods in turn.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "method.hpp"
#include "write_limit.hpp"

namespace tailrace::bench {

/// Row of one method; the same on every rank.
struct Row {
  std::string method;
  bool has_lanes = false;
  bool has_places = false;
  std::string codec_version;
  std::vector<double> seconds;          ///< Counted runs, in the order in which they ran.
  ReadBack checked;                     ///< Check of the warm-up run.
  RunDetails details;                   ///< Details of the median run (of two, the faster one).
  std::uint64_t peak_memory_bytes = 0;  ///< Warm-up run, largest rank: growth of resident memory.
  std::uint64_t written_bytes = 0;  ///< Bytes through the storage limit in the last run, all ranks.
  /// Prediction of the time model for this codec, bytes and storage; 0: the codec is unknown to it.
  double model_s = 0;

  double median_s() const;
  double min_s() const;
  double max_s() const;
};

/// One write, timed.
struct Run {
  double seconds = 0;  ///< Time from the first rank's create to the last one's close.
  RunDetails details;
};

/// Run one write to `path`, which must not exist. Collective. The output is not removed.
Result<Run> run_once(const BenchContext& context, Method& method, const std::string& path);

/// Run all methods below `folder`. Collective.
/// @error bound_broken  a method's output violates its bounds.  @error  like the methods
Result<std::vector<Row>> measure(const BenchContext& context,
                                 std::vector<std::unique_ptr<Method>>& methods,
                                 const WriteLimit& limit, const std::string& folder);

}  // namespace tailrace::bench
