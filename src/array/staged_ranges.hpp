// Error bounds that are relative to the values staged for new variables.

#pragma once

#include <span>
#include <vector>

#include "array/array_staging.hpp"
#include "core/comm.hpp"
#include "field/field_state.hpp"

namespace tailrace {

/// Convert the relative bounds of new fields into absolute ones, from the values of all ranks that
/// no later put of any rank replaces. If several ranks put one element in the same epoch, all these
/// values count, because their order is undefined. Errors are agreed.
/// Collective. Cost: nothing if no bound is relative. Else one pass over the values of fields with
/// relative bounds, one allreduce and one agreement. If ranks put in several epochs, three more
/// allreduces. If another rank replaced the smallest or largest value, that rank's list of slabs is
/// broadcast and the pass is repeated.
/// @param logs  one per field.
Status resolve_staged_bounds(Comm& comm, std::span<const StagingLog* const> logs,
                             std::vector<FieldState>& fields);

}  // namespace tailrace
