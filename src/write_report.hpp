// The report of a step: what each rank did, added up over all.

#pragma once

#include <span>

#include "core/comm.hpp"
#include "exec/executor.hpp"
#include "write.hpp"
#include "write_fields.hpp"

namespace tailrace {

/// Fill `report` with the sums and maxima over all ranks, and keep each field's largest error.
/// Collective. Cost: four allreduces of O(fields) numbers.
/// @param active  the step's fields in plan order, as done.tallies counts them.
/// @param sync_s  seconds that this rank's fdatasync took.
void add_up_step(Comm& comm, std::span<FieldState* const> active, const ExecutorReport& done,
                 double sync_s, StepReport& report);

}  // namespace tailrace
