// Reserve: places in the file for chunks that are not encoded yet.
//
// predictive keeps a slot for every chunk (Jin et al. 2022, III-D); arena keeps one run of the file
// for all chunks of a rank, in which errors of single predictions cancel (layout/arena.hpp). Ranks
// learn their base by one exclusive prefix sum of capacities, where the paper gathers all sizes
// everywhere. What does not fit its place overflows (exec/placer.hpp).

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/comm.hpp"
#include "exec/field_plan.hpp"
#include "exec/job_forecast.hpp"
#include "exec/ownership.hpp"
#include "layout/layout.hpp"

namespace tailrace {

/// This rank's places. All empty where no layout reserves.
struct Reservations {
  std::vector<Placement> slots;            ///< One per job; capacity 0: none.
  Placement arena;                         ///< capacity 0: none.
  std::vector<double> arena_expected;      ///< One per job: its expected bytes there, else 0.
  std::vector<std::uint64_t> field_bytes;  ///< Per plan; the arena's by what its chunks expect.
};

/// Whether a field's chunks get places by reserve_places().
inline bool reserves(const FieldPlan& plan) {
  return plan.layout->sizes_needed() == SizesNeeded::predicted;
}

/// Reserve for all jobs whose layouts place by prediction. `forecasts` is parallel to `jobs`; a
/// forecast that makes no sense (0, negative, not finite) counts as the chunk's raw bytes, one
/// above what the codec can put out as that. Slots and arena start at multiples of
/// `alignment_bytes`. Main thread only.
/// Collective if any field of the step reserves (the same on all ranks). Cost: one prefix sum and
/// one allreduce.
Reservations reserve_places(Comm& comm, Tail& tail, std::span<const FieldPlan> plans,
                            std::span<const ChunkJob> jobs, std::span<const JobForecast> forecasts,
                            std::uint64_t alignment_bytes);

}  // namespace tailrace
