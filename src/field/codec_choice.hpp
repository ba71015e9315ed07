// Choice of codecs: fields with codec=auto get the codec and settings that make the step shortest,
// once the bounds of a target are set (bound_target.cpp).
//
// Each rank samples a few chunks of each field and forecasts size and time of every candidate
// (model/dump_time.hpp). One allreduce sums the forecasts over all ranks; rank 0 decides from the
// sums. The decision holds for the field's lifetime in the file, because a dataset has one filter
// pipeline. Source: Liang et al. 2019, V-VI; Jin et al. 2022, eq. 1 and 2.
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

/// Load the machine profile, if `profile` is empty; also resolve align=auto by it. The file is the
/// first of these: options.profile_path, $TAILRACE_PROFILE, ~/.config/tailrace/profile.json if it
/// exists. Otherwise it is the built-in profile, scaled to rank 0's core if its speed was measured
/// and cached before (measure/measure_machine.hpp). The name "built-in" selects the unscaled
/// built-in profile. Rank 0 reads and broadcasts; warnings about a stale profile go to `log`.
/// Collective. Cost: one broadcast.
/// @param path  of the output, whose file system is compared with the profile's; "": not compared.
/// @error not_found, io_error, corrupt  the named file; the same on every rank.
Status need_profile(Comm& comm, FileOptions& options, const LogCallback& log,
                    const std::string& path, std::optional<MachineProfile>& profile);

/// Numbers of encode threads for the choice of codecs.
struct ThreadCounts {
  std::uint64_t own = 1;    ///< Threads of this rank, which process samples.
  std::uint64_t least = 1;  ///< Minimum over all ranks: a step is as fast as its slowest rank.
};

/// Choose the codecs of new fields that have codec=auto, or a bound without a codec: those that
/// serve the step best. First sets the bounds of a target (set_target_bounds). A field that
/// continues a dataset keeps the dataset's codec. A field whose lineage has chosen keeps that
/// choice, unless there is a target. ResolvedField::candidates records the comparison.
///
/// Collective. Cost: sampling of at most 4 chunks of each field on each rank; an agreement of
/// O(fields * candidates) numbers; a broadcast of rank 0's decision. If the machine was never
/// measured, rank 0 first scales `profile` to its core: about 60 ms and a broadcast, once for each
/// user and processor. Without a field to choose for, nothing is sent. The numbers in `along` are
/// reduced with the agreement; `along` is then empty.
/// @error invalid_argument  settings without a codec.
/// @error out_of_memory, and the errors of a BoxSource; the same on every rank.
Status choose_codecs_for(Comm& comm, std::vector<FieldState>& fields, const FileOptions& options,
                         MachineProfile& profile, const ThreadCounts& n_threads,
                         RankNumbers& along);

/// Check that a field whose codec Tailrace chooses has no codec settings. Not collective.
/// @error invalid_argument
Status check_chosen_settings(const FieldDefinition& definition);

/// Set the codec of a field that continues a dataset, and whose codec Tailrace chooses: the
/// candidate with the same filters. Collective. Cost: one broadcast.
/// @error invalid_argument  no candidate has these filters; the same on every rank.
Status name_stored_codec(Comm& comm, FieldState& field, const std::string& plugin_path);

// --- Targets: bounds for a requested file size or PSNR (target=size=, target=psnr=).
//
// Both use a sample on every rank and integer sums over all ranks, so that every rank finds the
// same bounds. target=size= predicts the sizes of all fields at a series of bounds, sums them in
// one allreduce, and inverts by interpolation (model/dump_time.hpp). target=psnr= starts from the
// bound for uniformly distributed errors, and corrects it by the codec's errors on the sample.

/// Set the bounds of new floating-point fields to meet the options' target. This concerns fields
/// with a bound, which is then the loosest allowed one, and fields for which none was given. A
/// field whose codec Tailrace chooses gets codec trz, which predicts sizes and errors. Does nothing
/// without a target. Call after resolve_bounds.
///
/// Collective. Cost: a pass over the values of fields without a bound; sampling: about 12 times
/// that of one codec, or twice the encoding of the sample (psnr); two to four allreduces.
/// @error invalid_argument  a size that even the loosest bounds do not reach; the message gives the
/// size that they reach. The same on every rank.
Status set_target_bounds(Comm& comm, std::vector<FieldState>& fields, const FileOptions& options);

}  // namespace tailrace
