// What is told of a step: its report, added up over all ranks, and the iterations of record=.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/comm.hpp"
#include "core/status.hpp"
#include "core/trace.hpp"
#include "exec/executor.hpp"
#include "exec/lane_clock.hpp"
#include "field/field.hpp"
#include "field/field_state.hpp"
#include "simulate/simulate_recording.hpp"
#include "write/write_plan.hpp"

namespace tailrace {

/// Fill `report` with the sums and maxima over all ranks, and keep each field's largest error. Of
/// the report itself, choose_s is this rank's own before, the slowest rank's after.
/// Collective. Cost: four allreduces of O(fields) numbers.
/// @param active  the step's fields in plan order, as done.tallies counts them.
/// @param sync_s  seconds that this rank's fdatasync took.
void add_up_step(Comm& comm, std::span<FieldState* const> active, const ExecutorReport& done,
                 double sync_s, StepReport& report);

/// Fill in slack_bytes from how far the tail has moved since `step_start`. After add_up_step.
/// Collective (a barrier); before anything else claims.
void add_up_space(Tail& tail, std::uint64_t step_start, StepReport& report);

/// The trace events of all ranks at rank 0, empty elsewhere; takes them out of `trace`. Collective.
std::vector<TraceEvent> gather_events(Comm& comm, Trace& trace);

// --- IterationRecorder: what a rank's iterations were really like, for `tailrace simulate`
// (record=).
//
// Of each iteration the obstacles that were seen, and of the step that was written beside it each
// chunk's bytes and times. Rank 0 writes all ranks' iterations as one JSON file when the output is
// closed (format: simulate/simulate_recording.hpp).

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
