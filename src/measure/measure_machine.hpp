// What a machine gives: a core to codecs (as a stand-in in some ms, too, where nobody measures),
// and its file system: write and read bandwidth over sizes and numbers of ranks, the latency of a
// sync and of a claim at the tail.
//
// Ranks write to one shared file, each its own run of it, in pieces as large as Tailrace's writes,
// and sync; reads come after the page cache was told to forget the file. The file is unlinked as
// soon as all ranks have it open, so that nothing is left behind however the measurement ends.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "core/comm.hpp"
#include "model/machine_profile.hpp"
#include "model/throughput.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- What one core needs to encode and decode chunks, measured while all ranks do the same.
//
// A measurement is what the encode lane does with a chunk: copy its values out of the application's
// array into a buffer, encode. Time is the thread's own CPU time, page faults included, so that
// other work on the node does not count; codec none costs the copy alone.

/// Both directions of a codec on one chunk of every rank: the mean over the ranks.
struct MeasuredTrip {
  ThroughputPoint encode;
  ThroughputPoint decode;
  double elapsed_s = 0;  ///< Wall clock of it all, slowest rank.
};

/// Encode and decode `values` (one chunk that `codec` was made for), `n_repeats` times after one
/// that warms up, and take the median of each rank. Collective: all ranks call it with a codec and
/// a chunk of their own; sizes may differ.
/// @error codec_failed, out_of_memory  on every rank, of the lowest rank that failed.
Result<MeasuredTrip> measure_trip(Comm& comm, const Codec& codec, std::span<const std::byte> values,
                                  std::size_t n_repeats);

// --- What stands in where nobody has measured.

/// The built-in profile, with the speed of each codec as this core has it: what a codec takes for
/// one small made-up chunk, over what the typical core would, scales its curves; plug-ins, which
/// are not loaded for that, take after exact_codec: both are compiled for any core. `processor`
/// names the core. The first call takes some 60 ms of CPU; later ones in the process take nothing.
/// Not collective. Thread-safe.
MachineProfile core_profile();

/// The same as an earlier process has kept it for this user, processor and version; nothing if
/// none has. In $XDG_CACHE_HOME/tailrace, else ~/.cache/tailrace. Not collective.
std::optional<MachineProfile> kept_core_profile();
/// core_profile(), kept for later processes. What cannot be written is not kept: nobody needs it.
MachineProfile measured_and_kept_core_profile();

/// Middle of the values, or the mean of the two in the middle; 0 for none.
double median_of(std::vector<double> values);

/// What is measured, and how long it may take.
struct StoragePlan {
  std::string folder;
  std::uint64_t least_bytes = 1U << 20;      ///< Per rank; doubled up to largest_bytes.
  std::uint64_t largest_bytes = 512U << 20;  ///< Per rank.
  std::uint64_t free_bytes = UINT64_MAX;     ///< Never more than half of this in all.
  std::uint64_t piece_bytes = 16U << 20;     ///< Of one write.
  double budget_s = 20;                      ///< For all numbers of ranks together.
};

struct StorageMeasurement {
  std::vector<BandwidthPoint> write;  ///< The sync included.
  std::vector<BandwidthPoint> read;
  double sync_bytes_per_s = 0;  ///< What the sync alone did, at one rank's largest size.
  /// Sizes that were left out, for the user.
  std::vector<std::string> remarks;
};

/// Numbers of ranks 1, 2, 4, ... and all; the others wait. Collective.
/// @param progress  called with the share of budget_s that is used up, in [0, 1].
/// @error no_space  not even the least size; larger ones that do not fit become a remark.
/// @error io_error, not_found  on every rank.
Result<StorageMeasurement> measure_storage(Comm& comm, const StoragePlan& plan,
                                           const std::function<void(double)>& progress);

/// Median seconds of fdatasync after a write of 4 KiB at a file's end, by rank 0. Collective.
Result<double> measure_sync_latency(Comm& comm, const std::string& folder, double budget_s);

/// Mean seconds of a claim of 1 MiB while all ranks claim. Collective.
/// @error as of Comm::create_tail
Result<double> measure_claim_latency(Comm& comm);

// --- What a step costs beside its encoding and writing, as far as no file is needed for it.

/// Messages there and back between rank 0 and the last rank, nobody else sending; then the
/// collectives that a step makes, by all ranks. Nothing on a single rank.
struct MeasuredMessages {
  double overhead_s = 0;  ///< Of a small message, for who sends it.
  std::vector<MessagePoint> points;
};
/// Medians; the same on every rank. Collective. Takes about `budget_s`.
MeasuredMessages measure_messages(Comm& comm, double budget_s);

/// Bytes per second of one rank that copies its values into memory that it has used before, all
/// ranks at once: the mean of their medians. Collective. @error out_of_memory
Result<double> measure_copy(Comm& comm);

/// Seconds that one number of another rank's report costs rank 0. Not collective.
double measure_number_merge();

}  // namespace tailrace
