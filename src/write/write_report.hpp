// The report of a step: what each rank did, added up over all.

#pragma once

#include <span>

#include "core/comm.hpp"
#include "exec/executor.hpp"
#include "field/field.hpp"
#include "field/field_state.hpp"

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

}  // namespace tailrace
