// Measures a machine: the speed of codecs on a core, and its file system. Of the file system it
// measures write and read bandwidth over sizes and numbers of ranks. It also measures the latency
// of a sync and of a claim at the tail. Without a profile, a stand-in for the core takes some ms.
//
// Ranks write to one shared file, each to its own run, in pieces as large as Tailrace's writes, and
// sync. Reads follow after the page cache was advised to drop the file. The file is unlinked as
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

// --- Time that one core needs to encode and decode chunks, measured while all ranks do the same.
//
// A measurement repeats the encode lane's work on a chunk: copy its values from the application's
// array into a buffer, encode. Time is the thread's own CPU time, including page faults, so that
// other work on the node does not count. Codec none costs only the copy.

/// Encoding and decoding of one chunk on every rank: the mean over the ranks.
struct MeasuredTrip {
  ThroughputPoint encode;
  ThroughputPoint decode;
  double elapsed_s = 0;  ///< Wall clock of the complete measurement, slowest rank.
};

/// Encode and decode `values`, one chunk that `codec` was made for, `n_repeats` times after a first
/// trip that warms up. Returns each rank's median, averaged over the ranks. Collective: each rank
/// passes its own codec and chunk; sizes may differ.
/// @error codec_failed, out_of_memory  on every rank, from the lowest rank that failed.
Result<MeasuredTrip> measure_trip(Comm& comm, const Codec& codec, std::span<const std::byte> values,
                                  std::size_t n_repeats);

// --- Stand-ins for a measured profile.

/// Return the built-in profile, with codec speeds scaled to this core. The time of a codec for one
/// small synthetic chunk, divided by that of the typical core, scales its curves. Plug-ins are not
/// loaded for that and scale like exact_codec, since both are compiled for any core. `processor`
/// names the core. The first call takes about 60 ms of CPU; later calls of the process are free.
/// Not collective. Thread-safe.
MachineProfile core_profile();

/// Return the core profile that an earlier process cached for this user, processor and version;
/// nothing if none did. In $XDG_CACHE_HOME/tailrace, else ~/.cache/tailrace. Not collective.
std::optional<MachineProfile> kept_core_profile();
/// Return core_profile() and cache it for later processes. A failed write is ignored, because the
/// cache is optional.
MachineProfile measured_and_kept_core_profile();

/// Return the middle value, or the mean of the two in the middle; 0 for none.
double median_of(std::vector<double> values);

/// Sizes to measure, and a time limit.
struct StoragePlan {
  std::string folder;
  std::uint64_t least_bytes = 1U << 20;      ///< Per rank; doubled up to largest_bytes.
  std::uint64_t largest_bytes = 512U << 20;  ///< Per rank.
  std::uint64_t free_bytes = UINT64_MAX;     ///< Free space; at most half of it is used in all.
  std::uint64_t piece_bytes = 16U << 20;     ///< Size of one write.
  double budget_s = 20;                      ///< Time limit for all numbers of ranks together.
};

struct StorageMeasurement {
  std::vector<BandwidthPoint> write;  ///< Including the sync.
  std::vector<BandwidthPoint> read;
  double sync_bytes_per_s = 0;  ///< Bandwidth of the sync only, at one rank's largest size.
  /// Sizes that were left out, for the user.
  std::vector<std::string> remarks;
};

/// Measure with 1, 2, 4, ... and all ranks; the other ranks wait. Collective.
/// @param progress  called with the used fraction of budget_s, in [0, 1].
/// @error no_space  not even the least size fits; a larger one that does not fit becomes a remark.
/// @error io_error, not_found  on every rank.
Result<StorageMeasurement> measure_storage(Comm& comm, const StoragePlan& plan,
                                           const std::function<void(double)>& progress);

/// Return the median seconds of fdatasync after a write of 4 KiB at a file's end, by rank 0.
/// Collective.
Result<double> measure_sync_latency(Comm& comm, const std::string& folder, double budget_s);

/// Return the mean seconds of a claim of 1 MiB while all ranks claim. Collective.
/// @error those of Comm::create_tail
Result<double> measure_claim_latency(Comm& comm);

// --- Costs of a step in addition to encoding and writing, as far as they need no file.

/// Round trips between rank 0 and the last rank while no other rank sends; then the collectives of
/// a step, by all ranks. Empty on a single rank.
struct MeasuredMessages {
  double overhead_s = 0;  ///< Time of a small message for its sender.
  std::vector<MessagePoint> points;
};
/// Measure the medians; the same on every rank. Collective. Takes about `budget_s`.
MeasuredMessages measure_messages(Comm& comm, double budget_s);

/// Return the bytes per second of one rank that copies its values into memory that it has already
/// used, on all ranks at once: the mean of their medians. Collective. @error out_of_memory
Result<double> measure_copy(Comm& comm);

/// Return the seconds that rank 0 needs per number of another rank's report. Not collective.
double measure_number_merge();

}  // namespace tailrace
