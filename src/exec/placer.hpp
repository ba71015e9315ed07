// Placer: places of chunks in the file. Forecasts, reservations, and the address of each chunk.

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

// --- JobForecast: a rank's forecast for one of its chunks, the base of reservations and order.

struct JobForecast {
  double encoded_bytes = 0;
  double deviation_bytes = 0;           ///< One standard deviation; 0: unknown.
  std::optional<double> sampled_bytes;  ///< Estimate behind it, for the running calibration.
  double encode_s = 0;                  ///< One thread's time, including verification.
  double write_s = 0;
};

// --- Reserve: places in the file for chunks that are not encoded yet.
//
// The layout predictive reserves a slot for every chunk (Jin et al. 2022, III-D). The layout arena
// reserves one run of the file for all chunks of a rank, in which errors of single predictions
// cancel (layout/arena.hpp). Ranks get their base by one exclusive prefix sum of capacities; the
// paper instead gathers all sizes on every rank. A chunk that does not fit its place overflows (see
// Placer).

/// Places of this rank. All empty if no layout reserves.
struct Reservations {
  std::vector<Placement> slots;        ///< One per job; capacity 0: none.
  Placement arena;                     ///< capacity 0: none.
  std::vector<double> arena_expected;  ///< Expected bytes of each job in the arena, else 0.
  /// Reserved bytes per plan; the arena's are split by forecasts.
  std::vector<std::uint64_t> field_bytes;
};

/// True if reserve_places() gives a field's chunks their places.
inline bool reserves(const FieldPlan& plan) {
  return plan.layout->sizes_needed() == SizesNeeded::predicted;
}

/// Reserve places for all jobs whose layouts place by prediction. `forecasts` is parallel to
/// `jobs`. An invalid forecast (0, negative, not finite) counts as the chunk's raw bytes; one above
/// the largest possible stored size is clamped to that. Slots and arena start at multiples of
/// `alignment_bytes`. Main thread only. Collective if any field of the step reserves, which is the
/// same on all ranks. Cost: one prefix sum and one allreduce.
Reservations reserve_places(Comm& comm, Tail& tail, std::span<const FieldPlan> plans,
                            std::span<const ChunkJob> jobs, std::span<const JobForecast> forecasts,
                            std::uint64_t alignment_bytes);

/// Claim one run at the file's tail for all plans whose chunks have places by shape (contiguous,
/// sparse, hybrid). Sets their base_address. Collective. Cost: one allreduce if such a plan exists.
void reserve_by_shape(Comm& comm, Tail& tail, std::uint64_t alignment_bytes,
                      std::span<FieldPlan> plans);

// --- Placer: the address of an encoded chunk, if its layout has reserved a place for it.
//
// Places by shape (contiguous, sparse, hybrid) and slots (predictive) belong to one chunk each. The
// arena belongs to all chunks of this rank and is used front to back. A chunk that is larger than
// its place overflows. It goes undivided to the smallest sufficient place that another overflow has
// left, else to the file's tail. No chunk is split, since its encoded size is known before a byte
// is written (Jin et al. 2022, III-D, and Bicer et al. 2014 split). If forecasts share an error,
// one overflow of an arena would be followed by many. The overflow therefore opens a new run for
// all remaining chunks, sized by their forecasts times the error seen so far.
//
// Invariant 1: no byte of a place is given to two chunks; each chunk asks once.
// Invariant 2: a returned place has room for the complete chunk.

class Placer {
 public:
  /// Use of one field's places on this rank.
  struct Tally {
    std::uint64_t n_overflow_chunks = 0;
    std::uint64_t reserved_bytes = 0;  ///< Reserved before the sizes were known.
  };

  Placer(std::span<const FieldPlan> plans, std::span<const ChunkJob> jobs,
         Reservations reservations, std::uint64_t alignment_bytes);

  /// Return a place by shape, or from a slot, for one of the jobs. std::nullopt: the chunk goes to
  /// the tail. Thread-safe.
  std::optional<std::uint64_t> place(const ChunkJob& job, std::uint64_t encoded_bytes);

  /// True if a write of `n_bytes` fits the rest of the arena. I/O lane only, like all calls on the
  /// arena.
  bool arena_holds(std::uint64_t n_bytes) const;
  std::uint64_t take_from_arena(std::uint64_t n_bytes);
  /// Replace the forecast of a chunk by its encoded size. Once per chunk, before it is placed.
  void count_arena_chunk(const ChunkJob& job, std::uint64_t encoded_bytes);
  /// Forecast bytes of the arena's chunks that are not counted yet, corrected by the counted ones.
  std::uint64_t arena_bytes_to_come() const;
  /// Continue in another run; the rest of the current one is freed for overflows.
  /// @param field  of the chunk that did not fit.
  /// @param n_bytes_known  part of the run that is for that chunk.
  void move_arena(const Placement& run, std::size_t field, std::uint64_t n_bytes_known);

  /// Return a place that an overflow has left, for a chunk that has outgrown its own. std::nullopt:
  /// the chunk goes to the tail. Counts the overflow. Thread-safe.
  std::optional<std::uint64_t> place_overflow(std::size_t field, std::uint64_t encoded_bytes);

  /// Tallies per plan. Valid once the last chunk is placed.
  const std::vector<Tally>& tallies() const { return tallies_; }

 private:
  /// Sums over one field's chunks in the arena.
  struct ArenaSums {
    double to_come = 0;        ///< Forecasts of chunks that are not counted.
    double seen_expected = 0;  ///< Forecasts of counted chunks.
    /// Encoded bytes of counted chunks.
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
  std::vector<ArenaSums> arena_sums_;  ///< One per plan, since forecast errors differ by field.

  std::mutex mutex_;  ///< Guards the members below.
  std::vector<Placement> freed_;
  std::vector<Tally> tallies_;
};

}  // namespace tailrace
