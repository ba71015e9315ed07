// Choosing codecs: fields with codec=auto get the codec and settings that make the step shortest.
//
// Samples a few chunks of each field on each rank, forecasts size and time of every candidate
// (model/dump_time.hpp), adds the forecasts up over all ranks in one allreduce, and takes what rank
// 0 decides from the sums. The decision is for the field's life in the file: a dataset has one
// filter pipeline. Source: Liang et al. 2019, V-VI; Jin et al. 2022, eq. 1 and 2.

#pragma once

#include <string>
#include <vector>

#include "core/comm.hpp"
#include "core/options.hpp"
#include "field/field.hpp"
#include "field/field_state.hpp"
#include "model/machine_profile.hpp"

namespace tailrace {

/// The profile that options.profile_path names, else $TAILRACE_PROFILE, else
/// ~/.config/tailrace/profile.json if there is one, else the built-in one; read by rank 0 and
/// broadcast. Remarks on a stale one go to `log`. Collective. Cost: one agreement, one broadcast.
/// @param path  of the output: what the profile's file system is compared with; "": not compared.
/// @error not_found, io_error, corrupt  the file named; the same on every rank.
Result<MachineProfile> load_profile(Comm& comm, const FileOptions& options, const LogCallback& log,
                                    const std::string& path = "");

/// Replace codec=auto in the definitions of new active fields, and the codec of fields with a bound
/// for which none was named, by what serves the step best, after the bounds of a target are set
/// (bound_target.hpp). A field that continues a dataset takes the dataset's, one whose lineage
/// (lineage.hpp) has chosen takes that choice, unless there is a target.
/// FieldState::candidates tells what was compared. Collective. Cost: sampling, at most 4 chunks of
/// each field on each rank; two allreduces, one of O(fields * candidates) numbers, and a broadcast:
/// rank 0 decides.
/// @error invalid_argument  settings without a codec.  @error out_of_memory, and what a BoxSource
/// returns; the same on every rank.
Status choose_codecs_for(Comm& comm, std::vector<FieldState>& fields, const FileOptions& options,
                         const MachineProfile& profile, std::uint64_t n_threads);

}  // namespace tailrace
