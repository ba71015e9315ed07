// Reports of a step: sums over all ranks, and the iterations of lab.record=.

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

/// Numbers of a step and their reduction over the ranks. They start as this rank's own in the
/// report, go to rank 0 with the chunks, and return into the report (output/publish_fields.hpp).
class StepSums {
 public:
  /// Put this rank's numbers into `report`. It must already hold this rank's handover_s,
  /// backpressure_s, choose_s, exposed_s, step_s and delayed obstacles.
  /// @param active  the step's fields in plan order, as done.tallies counts them.
  /// @param sync_s  seconds that this rank's fdatasync took.
  StepSums(std::span<FieldState* const> active, const ExecutorReport& done, double sync_s,
           StepReport& report);
  /// Add this rank's forecast numbers; on all ranks or on none.
  void add_forecasts(const StepPlan& plan, std::vector<ForecastSums> forecasts);
  /// Update the largest errors of the fields. Requires that `numbers` are reduced over all ranks.
  void keep_max_errors() const;
  /// Compute the derived numbers, once all numbers are reduced.
  void finish();

  RankNumbers numbers;
  RankNumbers of_root;
  // Set by rank 0 during publishing.
  std::uint64_t taken_bytes = 0;  ///< Growth of the tail since the last commit.
  double publish_s = 0;

 private:
  std::span<FieldState* const> active_;
  StepReport& report_;
  double hidden_s_ = 0;
  double shorter_s_ = 0;
  std::vector<ForecastSums> forecasts_;  ///< One per field; empty: no forecasts.
};

/// Gather the trace events of all ranks at rank 0, empty elsewhere; empties `trace`. Collective.
std::vector<TraceEvent> gather_events(Comm& comm, Trace& trace);

// --- IterationRecorder: records real iterations of a rank, for `tailrace-lab simulate`.
//
// Each iteration has the observed obstacles, and the bytes and times of each chunk of the step that
// was written during it. Rank 0 writes all ranks' iterations as one JSON file when the output is
// closed (format: write/recording.hpp).

class IterationRecorder {
 public:
  /// Add one iteration, and the step that was written during it. Not collective.
  /// @param began_s  start of the iteration, on the events' clock.
  /// @param events  encodes and writes of this rank. A write of several chunks counts for each by
  /// its bytes. A chunk that another rank has written counts at the mean speed of this rank's
  /// writes.
  void add(const RecordedIteration& seen, double began_s, const Ownership& ownership,
           const StepPlan& plan, std::span<const WrittenChunk> written,
           std::span<const TraceEvent> events);

  /// Write the recording. Collective. Cost: a gather of all iterations to rank 0, which writes
  /// `path`; nothing is written of fewer than two iterations. @error io_error; the same on every
  /// rank.
  Status write(Comm& comm, const std::string& path) const;

 private:
  std::vector<RecordedRankIteration> iterations_;
};

}  // namespace tailrace
