// Error bounds that are relative to the values staged for new variables.

#pragma once

#include <span>
#include <vector>

#include "array/array_staging.hpp"
#include "core/comm.hpp"
#include "field/field_state.hpp"

namespace tailrace {

/// The range of this rank's staged values, as far as the rule on wide bounds needs it for an
/// absolute bound. Values that another rank replaces count. Not collective.
ValueRange range_within_bound(const StagingLog& log, const FieldDefinition& definition);

/// Convert the relative bounds of new fields into absolute ones, and judge absolute bounds. The
/// values of all ranks count that no later put of any rank replaces. If several ranks put one
/// element in the same epoch, all these values count, because their order is undefined. Errors are
/// agreed.
/// Collective. Cost: nothing without bounds. Else one pass over the values of fields with relative
/// bounds, a part of those with absolute ones, one allreduce and one agreement. If ranks put in
/// several epochs, three more allreduces. If another rank replaced the smallest or largest value,
/// that rank's list of slabs is broadcast and the pass is repeated.
/// @param logs  one per field.
Status resolve_staged_bounds(Comm& comm, std::span<const StagingLog* const> logs,
                             std::vector<FieldState>& fields);

}  // namespace tailrace
