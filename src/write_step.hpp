// Step: all that belongs to one step between its puts and its commit.
//
// In mode sync it lives within end_step. In the other modes it is handed over: it keeps the puts
// and attributes that it came with, while the application records the next step's, until the next
// end_step, wait or close completes it.

#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "exec/executor.hpp"
#include "exec/obstacle_log.hpp"
#include "write.hpp"
#include "write_predict.hpp"
#include "write_record.hpp"

namespace tailrace {

/// What a rank puts in a step, as far as chunks and their owners depend on it.
struct PutPattern {
  std::vector<std::size_t> field_indices;  ///< Of the fields that were put here, also if empty.
  std::vector<std::vector<Box>> boxes;     ///< Parallel to it.

  bool operator==(const PutPattern&) const = default;
};

struct Step {
  std::vector<std::size_t> field_indices;      ///< Of the fields that take part, in plan order.
  std::vector<std::vector<PutRecord>> puts;    ///< Handed over with them; empty in mode sync.
  std::vector<PendingAttribute> attributes;    ///< Likewise.
  std::shared_ptr<const Ownership> ownership;  ///< Shared by steps that repeat the same puts.
  StepPlan plan;
  std::vector<int> writers;  ///< By job, who writes it on this node; see exec/executor.hpp.
  StepReport report;
  Trace trace;               ///< Of its lanes.
  RecordedIteration beside;  ///< The iteration that it was written beside; see record=.
  double delay_s = 0;        ///< By which the application's obstacles began late, all together.

  std::unique_ptr<Executor> executor;  // last: its threads use what stands above

  /// The fields that take part. Pointers are good until the next define_field().
  std::vector<FieldState*> active(StepRecord& record) const;
  /// Take the record's puts and attributes along; plans and ownership go on using them.
  void take(StepRecord& record);
  /// The application waited for a chunk that was being encoded; 0 and less: it did not.
  void count_delay(double seconds);
};

/// What was recorded, if it is nothing but puts of fields that are in the file already, from
/// memory: such a step may be the last one over again. Not collective.
std::optional<PutPattern> repeatable_puts(const StepRecord& record);

/// Refuse what cannot go on without the main thread. Not collective.
/// @error unsupported  a layout that must know all sizes first, or values that are pulled.
Status check_can_be_handed_over(std::span<FieldState* const> active);

/// Bring the numbers of the modes async and in_situ together over all ranks: slowest rank, counts
/// added up. Collective. Cost: two allreduces.
void add_up_idle_time(Comm& comm, const ExecutorReport& done, StepReport& report);

}  // namespace tailrace
