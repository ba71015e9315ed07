// Places for chunks: what is expected of them, what is reserved for them, and where each then goes.

#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/comm.hpp"
#include "exec/chunk_homes.hpp"
#include "exec/field_plan.hpp"
#include "layout/layout.hpp"

namespace tailrace {

// --- JobForecast: what a rank expects of one of its chunks; from it come reservations and the
// order.

struct JobForecast {
  double encoded_bytes = 0;
  double deviation_bytes = 0;           ///< One standard deviation; 0: not known.
  std::optional<double> sampled_bytes;  ///< The Estimate behind it, for the running calibration.
  double encode_s = 0;                  ///< Of one thread, verification included.
  double write_s = 0;
};

// --- Reserve: places in the file for chunks that are not encoded yet.
//
// predictive keeps a slot for every chunk (Jin et al. 2022, III-D); arena keeps one run of the file
// for all chunks of a rank, in which errors of single predictions cancel (layout/arena.hpp). Ranks
// learn their base by one exclusive prefix sum of capacities, where the paper gathers all sizes
// everywhere. What does not fit its place overflows (exec/placer.hpp).

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

/// Take one run of the file's tail for all plans whose chunks have places by shape (contiguous,
/// sparse, hybrid): sets their base_address. Collective. Cost: one allreduce if there are any.
void reserve_by_shape(Comm& comm, Tail& tail, std::uint64_t alignment_bytes,
                      std::span<FieldPlan> plans);

// --- Placer: the address of an encoded chunk, as far as its layout has kept a place for it.
//
// Places by shape (contiguous, sparse, hybrid) and slots (predictive) belong to one chunk each; the
// arena belongs to all chunks of this rank together and is handed out front to back. A chunk that
// is larger than its place overflows: it goes whole to the smallest place that another overflow has
// left and that is large enough, or else to the file's tail. Nothing is split, since the encoded
// size is known before a byte is written (Jin et al. 2022, III-D, splits; Bicer et al. 2014 too).
// Where forecasts have an error in common, one overflow of an arena is followed by many: so it
// takes with it a new run for all that is still to come, by what the chunks so far have come to.
//
// Invariant 1: no byte of a place is given to two chunks; each chunk asks once.
// Invariant 2: what is given has room for the whole chunk.

class Placer {
 public:
  /// What became of one field's places on this rank.
  struct Tally {
    std::uint64_t n_overflow_chunks = 0;
    std::uint64_t reserved_bytes = 0;  ///< Set aside before sizes were known.
  };

  Placer(std::span<const FieldPlan> plans, std::span<const ChunkJob> jobs,
         Reservations reservations, std::uint64_t alignment_bytes);

  /// A place by shape, or from a slot, for one of the jobs. Nothing: it goes to the tail.
  /// Thread-safe.
  std::optional<std::uint64_t> place(const ChunkJob& job, std::uint64_t encoded_bytes);

  /// Whether a write of `n_bytes` fits the arena's rest. I/O lane only, as all of the arena.
  bool arena_holds(std::uint64_t n_bytes) const;
  std::uint64_t take_from_arena(std::uint64_t n_bytes);
  /// An arena's chunk is about to be placed: its forecast is no longer one. Once per chunk.
  void count_arena_chunk(const ChunkJob& job, std::uint64_t encoded_bytes);
  /// What is expected of the arena's chunks that have not been counted.
  std::uint64_t arena_bytes_to_come() const;
  /// Go on in another run; what is left of the arena so far is freed for overflows. `field`: whose
  /// chunk did not fit; `n_bytes_known` of the run are for that chunk.
  void move_arena(const Placement& run, std::size_t field, std::uint64_t n_bytes_known);

  /// A place that an overflow has left for a chunk that has outgrown its own; nothing: the tail.
  /// Counts the overflow. Thread-safe.
  std::optional<std::uint64_t> place_overflow(std::size_t field, std::uint64_t encoded_bytes);

  /// Per plan. Once no chunk comes any more.
  const std::vector<Tally>& tallies() const { return tallies_; }

 private:
  /// Of one field's chunks in the arena.
  struct ArenaSums {
    double to_come = 0;        ///< Forecasts of those that have not been counted.
    double seen_expected = 0;  ///< Forecasts of those that have, and what they came to.
    double seen_encoded = 0;
  };

  void sum_up_arena();
  Placement own_place(const ChunkJob& job) const;
  std::uint64_t aligned(std::uint64_t address) const {
    return (address + alignment_bytes_ - 1) / alignment_bytes_ * alignment_bytes_;
  }

  std::span<const FieldPlan> plans_;
  std::span<const ChunkJob> jobs_;
  Reservations reservations_;
  std::uint64_t alignment_bytes_;
  std::uint64_t arena_next_ = 0;
  std::vector<ArenaSums> arena_sums_;  ///< Per plan: what forecasts get wrong is a field's own.

  std::mutex mutex_;  ///< Guards what follows.
  std::vector<Placement> freed_;
  std::vector<Tally> tallies_;
};

}  // namespace tailrace
