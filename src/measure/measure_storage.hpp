// What the file system gives: write and read bandwidth over sizes and numbers of ranks, the latency
// of a sync and of a claim at the tail.
//
// Ranks write to one shared file, each its own run of it, in pieces as large as Tailrace's writes,
// and sync; reads come after the page cache was told to forget the file. The file is unlinked as
// soon as all ranks have it open, so that nothing is left behind however the measurement ends.

#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "core/comm.hpp"
#include "core/status.hpp"
#include "model/roofline.hpp"

namespace tailrace {

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

}  // namespace tailrace
