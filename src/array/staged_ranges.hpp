// Error bounds that are relative to the values staged for new variables.

#pragma once

#include <span>
#include <vector>

#include "array/array_staging.hpp"
#include "core/comm.hpp"
#include "field/field_state.hpp"

namespace tailrace {

/// Turn the bounds of new fields into absolute ones, by the values of all ranks that no later put
/// of any rank replaces. Puts of several ranks to one element in the same epoch all count: their
/// order is undefined. Errors are agreed.
/// Collective. Cost: one pass over the values of fields with such a bound, one allreduce and one
/// agreement. Three allreduces more where ranks have put in several epochs. Where another rank has
/// replaced the least or greatest value, its list of slabs is broadcast and the pass repeated.
/// @param logs  one per field.
Status resolve_staged_bounds(Comm& comm, std::span<const StagingLog* const> logs,
                             std::vector<FieldState>& fields);

}  // namespace tailrace
