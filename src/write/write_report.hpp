// What is told of a step: its report, added up over all ranks, and the iterations of lab.record=.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/comm.hpp"
#include "core/trace.hpp"
#include "exec/executor.hpp"
#include "exec/lane_clock.hpp"
#include "field/field.hpp"
#include "field/field_state.hpp"
#include "trz/base/status.hpp"
#include "write/recording.hpp"
#include "write/write_plan.hpp"

namespace tailrace {

/// The numbers of a step on their way from each rank's own to all ranks': they start in the report,
/// go to rank 0 with the chunks, and come back into it (output/publish_fields.hpp).
class StepSums {
 public:
  /// Put this rank's numbers into `report`. Of the report itself, handover_s, backpressure_s,
  /// choose_s, exposed_s, step_s and what obstacles were delayed are this rank's own before.
  /// @param active  the step's fields in plan order, as done.tallies counts them.
  /// @param sync_s  seconds that this rank's fdatasync took.
  StepSums(std::span<FieldState* const> active, const ExecutorReport& done, double sync_s,
           StepReport& report);
  /// Likewise of what was forecast; on all ranks or on none.
  void add_forecasts(const StepPlan& plan, std::vector<ForecastSums> forecasts);
  /// What each field's largest error is held to be from now on; once `numbers` are all ranks'.
  void keep_max_errors() const;
  /// What follows from the numbers, when all are back.
  void finish();

  RankNumbers numbers;
  RankNumbers of_root;
  // Rank 0's, by publishing.
  std::uint64_t taken_bytes = 0;  ///< How far the tail has moved since the last commit.
  double publish_s = 0;

 private:
  std::span<FieldState* const> active_;
  StepReport& report_;
  double hidden_s_ = 0;
  double shorter_s_ = 0;
  std::vector<ForecastSums> forecasts_;  ///< One per field; empty: nothing was forecast.
};

/// The trace events of all ranks at rank 0, empty elsewhere; takes them out of `trace`. Collective.
std::vector<TraceEvent> gather_events(Comm& comm, Trace& trace);

// --- IterationRecorder: what a rank's iterations were really like, for `tailrace-lab simulate`
// (lab.record=).
//
// Of each iteration the obstacles that were seen, and of the step that was written beside it each
// chunk's bytes and times. Rank 0 writes all ranks' iterations as one JSON file when the output is
// closed (format: write/recording.hpp).

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
