// IterationRecorder: what a rank's iterations were really like, for `tailrace simulate` (record=).
//
// Of each iteration the obstacles that were seen, and of the step that was written beside it each
// chunk's bytes and times. Rank 0 writes all ranks' iterations as one JSON file when the output is
// closed (format: simulate/simulate_recording.hpp).

#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/comm.hpp"
#include "core/status.hpp"
#include "core/trace.hpp"
#include "exec/obstacle_log.hpp"
#include "simulate/simulate_recording.hpp"
#include "write/write_plan.hpp"

namespace tailrace {

class IterationRecorder {
 public:
  /// One iteration and the step that went on beside it. Not collective.
  /// @param began_s  of the iteration, on the events' clock.
  /// @param events  of this rank: encodes and writes. A write of several chunks counts for each by
  ///   its bytes; a chunk that another rank has written, at the mean speed of this rank's writes.
  void add(const RecordedIteration& seen, double began_s, const Ownership& ownership,
           const StepPlan& plan, std::span<const WrittenChunk> written,
           std::span<const TraceEvent> events);

  /// Collective. Cost: a gather of all iterations to rank 0, which writes `path`; nothing is
  /// written of less than two iterations. @error io_error; the same on every rank.
  Status write(Comm& comm, const std::string& path) const;

 private:
  std::vector<RecordedRankIteration> iterations_;
};

}  // namespace tailrace
