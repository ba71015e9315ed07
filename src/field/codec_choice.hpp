// Choosing codecs: fields with codec=auto get the codec and settings that make the step shortest,
// after the bounds that a target asks for are set (bound_target.cpp).
//
// Samples a few chunks of each field on each rank, forecasts size and time of every candidate
// (model/dump_time.hpp), adds the forecasts up over all ranks in one allreduce, and takes what rank
// 0 decides from the sums. The decision is for the field's life in the file: a dataset has one
// filter pipeline. Source: Liang et al. 2019, V-VI; Jin et al. 2022, eq. 1 and 2.

#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/comm.hpp"
#include "core/options.hpp"
#include "field/field.hpp"
#include "field/field_state.hpp"
#include "model/machine_profile.hpp"

namespace tailrace {

/// The profile that options.profile_path names, else $TAILRACE_PROFILE, else
/// ~/.config/tailrace/profile.json if there is one, else the built-in one, with the speed of rank
/// 0's core if that has been kept (measure/measure_machine.hpp); "built-in" names it as it stands.
/// Read by rank 0 and broadcast. Remarks on a stale one go to `log`. It also says what align=auto
/// comes to. Nothing is done where `profile` is there. Collective. Cost: one broadcast.
/// @param path  of the output: what the profile's file system is compared with; "": not compared.
/// @error not_found, io_error, corrupt  the file named; the same on every rank.
Status need_profile(Comm& comm, FileOptions& options, const LogCallback& log,
                    const std::string& path, std::optional<MachineProfile>& profile);

/// Encode threads of a rank, as the choice of codecs reckons with them.
struct ThreadCounts {
  std::uint64_t own = 1;    ///< Of this rank, which look at samples.
  std::uint64_t least = 1;  ///< Of any rank: a step is as fast as its slowest.
};

/// Replace codec=auto in the definitions of new fields, and the codec of fields with a bound
/// for which none was named, by what serves the step best, after the bounds of a target are set
/// (set_target_bounds). A field that continues a dataset takes the dataset's, one whose lineage
/// has chosen takes that choice, unless there is a target.
/// ResolvedField::candidates tells what was compared. Collective. Cost: sampling, at most 4 chunks
/// of each field on each rank; an agreement of O(fields * candidates) numbers and a broadcast:
/// rank 0 decides. Where nobody has measured the machine, rank 0 first scales the `profile` to its
/// core: some 60 ms and a broadcast, once for a user and processor. Nothing is said where nothing
/// is chosen. Numbers that go `along` with the agreement are reduced, and `along` is empty then.
/// @error invalid_argument  settings without a codec.  @error out_of_memory, and what a BoxSource
/// returns; the same on every rank.
Status choose_codecs_for(Comm& comm, std::vector<FieldState>& fields, const FileOptions& options,
                         MachineProfile& profile, const ThreadCounts& n_threads,
                         RankNumbers& along);

/// Of a field whose codec is ours to choose: it has no settings. Not collective.
/// @error invalid_argument
Status check_chosen_settings(const FieldDefinition& definition);

/// Name the codec of a field that continues a dataset, and whose codec is ours to choose: the
/// candidate that makes the same filters. Collective. Cost: one broadcast.
/// @error invalid_argument  there is none; the same on every rank.
Status name_stored_codec(Comm& comm, FieldState& field, const std::string& plugin_path);

// --- Targets: the bounds that a wished file size or PSNR comes to (target=size=, target=psnr=).
//
// Both by a sample on every rank and sums over all ranks in whole numbers, so that every rank finds
// the same bounds. target=size=: sizes of all fields at a row of bounds, one allreduce, and the
// inverse by interpolation (model/dump_time.hpp). target=psnr=: the bound that even errors
// would need, corrected by the errors that the codec makes on the sample.

/// Set the bounds of new fields of floating point numbers that have a bound, or none was
/// given of, to what the options' target asks; a bound that was given is the loosest one. A
/// field whose codec is ours to choose becomes codec trz, by which sizes and errors are predicted.
/// Nothing is done without a target. After resolve_bounds.
/// Collective. Cost: a pass over the values of fields without a bound; sampling: about 12 times
/// that of one codec, or twice the encoding of the sample (psnr); two to four allreduces.
/// @error invalid_argument  a size that even the loosest bound does not make; says what it makes.
/// The same on every rank.
Status set_target_bounds(Comm& comm, std::vector<FieldState>& fields, const FileOptions& options);

}  // namespace tailrace
