// Targets: the bounds that a wished file size or PSNR comes to (target-size=, target-psnr=).
//
// Both by a sample on every rank and sums over all ranks in whole numbers, so that every rank finds
// the same bounds. target-size: sizes of all fields at a row of bounds, one allreduce, and the
// inverse by interpolation (model/dump_time.hpp). target-psnr: the bound that even errors
// would need, corrected by the errors that the codec makes on the sample.

#pragma once

#include <vector>

#include "core/comm.hpp"
#include "core/options.hpp"
#include "field/field_state.hpp"

namespace tailrace {

/// Set the bounds of new active fields of floating point numbers that have a bound, or none was
/// given of, to what the options' target asks; a bound that was given is the loosest one. A
/// field whose codec is ours to choose becomes codec trz, by which sizes and errors are predicted.
/// Nothing is done without a target. After resolve_bounds.
/// Collective. Cost: a pass over the values of fields without a bound; sampling: about 12 times
/// that of one codec, or twice the encoding of the sample (psnr); two to four allreduces.
/// @error invalid_argument  a size that even the loosest bound does not make; says what it makes.
/// The same on every rank.
Status set_target_bounds(Comm& comm, std::vector<FieldState>& fields, const FileOptions& options);

}  // namespace tailrace
