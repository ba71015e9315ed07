// Measuring: warm up and check every method, then let them take turns.

#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "method.hpp"
#include "write_limit.hpp"

namespace tailrace::bench {

/// One method's row; the same on every rank.
struct Row {
  std::string method;
  bool has_lanes = false;
  bool has_places = false;
  std::string codec_version;
  std::vector<double> seconds;          ///< Counted runs, in the order in which they ran.
  ReadBack checked;                     ///< From the warm-up run.
  RunDetails details;                   ///< Of the median run (of the lower one, if there are two).
  std::uint64_t peak_memory_bytes = 0;  ///< Warm-up run, largest rank: growth of resident memory.
  std::uint64_t written_bytes = 0;  ///< What passed the storage limit in the last run, all ranks.
  /// What the time model expects of this codec, bytes and storage; 0: it does not know the codec.
  double model_s = 0;

  double median_s() const;
  double min_s() const;
  double max_s() const;
};

/// One write, timed.
struct Run {
  double seconds = 0;  ///< From the first rank's create to the last one's close.
  RunDetails details;
};

/// Let a method write to `path`, which is not there. Collective. What it leaves stays.
Result<Run> run_once(const BenchContext& context, Method& method, const std::string& path);

/// Run all methods below `folder`. Collective.
/// @error bound_broken  a method's output is not what it must be.  @error as of the methods.
Result<std::vector<Row>> measure(const BenchContext& context,
                                 std::vector<std::unique_ptr<Method>>& methods,
                                 const WriteLimit& limit, const std::string& folder);

}  // namespace tailrace::bench
