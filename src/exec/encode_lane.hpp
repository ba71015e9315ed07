// EncodeLane: the encode threads, and the functions that take one chunk through them.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/comm.hpp"
#include "core/trace.hpp"
#include "exec/chunk_homes.hpp"
#include "exec/field_plan.hpp"
#include "exec/idle_waits.hpp"
#include "exec/io_lane.hpp"
#include "exec/lane_clock.hpp"
#include "exec/thread_team.hpp"
#include "schedule/lane_rule.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- One chunk's way through the CPU lane: gather its values, encode, verify, fall back if needed.

/// Allocate a buffer for the values of one chunk. If parts of the chunk belong to no rank (holes,
/// the pad of growing datasets), the buffer is filled with the fill value; otherwise it is
/// uninitialised.
/// @param budget  provides the block, from its cache if possible; null: allocate.
/// @error out_of_memory
Result<Buffer> make_chunk_buffer(const FieldPlan& plan, const ChunkJob& job,
                                 MemoryBudget* budget = nullptr);

/// Copy this rank's parts of the chunk into its buffer. @param values  from make_chunk_buffer().
void gather_local_parts(const FieldPlan& plan, const ChunkJob& job, Buffer& values);

/// Repeat the last values of each row, plane, ... into the part of an edge chunk beyond the field's
/// shape. The pad then costs next to nothing to encode.
void pad_edges(const FieldPlan& plan, const ChunkJob& job, Buffer& values);

/// Return the chunk's values in the caller's memory if they can be written from there. That needs a
/// field without filters and verification, and values that are one run of one put's memory. Empty
/// otherwise.
std::span<const std::byte> borrow_values(const FieldPlan& plan, const ChunkJob& job);

/// Result of encoding one chunk.
struct ChunkOutcome {
  EncodedBytes encoded;
  bool stored_raw = false;  ///< The codec could not keep the bound; the bytes are unfiltered.
  double max_error = 0;     ///< Only if verified.
  double verify_s = 0;
};

/// Encode a complete chunk, and verify it if the plan says so. Afterwards `values` is empty if the
/// codec or the raw fallback reused its memory; otherwise it is still allocated. Not collective.
/// Thread-safe.
/// @error codec_failed, bound_broken  if fall_back_to_raw is off; the text names field and chunk.
Result<ChunkOutcome> encode_chunk(const FieldPlan& plan, std::uint64_t chunk_index, Buffer& values);

/// Store the chunk with every filter skipped. HDF5 stores and reads it unchanged, so each value is
/// exact.
ChunkOutcome store_raw(const FieldPlan& plan, Buffer values);

/// Upper limit of the memory that one chunk of this field holds while it is encoded, for the
/// budget.
std::uint64_t encode_memory_bytes(const FieldPlan& plan);

// --- EncodeLane: the threads of a rank that turn staged chunks into encoded ones.
//
// The threads belong to a ThreadTeam that persists from step to step. They wake when chunks arrive
// and rest when none waits.
//
// Invariant 1: a chunk's budget shrinks to the bytes of its encoded form before the chunk is passed
// on.
// Invariant 2: after the first failure, here or elsewhere on the node, chunks are dropped unencoded
// and their memory is released, so that the queue always drains.
// Invariant 3: while a chunk waits and the lane is not held back, the number of active threads is
// the smaller of two: all threads, or the chunks pushed since the lane last rested.
//
// One more helper, under IdleWaits, encodes while the program's main thread waits in MPI. It begins
// a chunk only if the wait has lasted for a while, compared to the time that a chunk takes: a wait
// that has lasted long will last longer, and a short one must not end late.

/// A chunk with the values of all other ranks; the encode thread gathers this rank's own.
struct StagedChunk {
  const ChunkJob* job = nullptr;
  Buffer values;                        ///< Unallocated: all values are in this rank's puts.
  std::optional<EncodedBytes> encoded;  ///< Encoded by its source: nothing is left to do.
  /// True if `values` also holds this rank's own values, so that the puts are not needed.
  bool gathered = false;
  std::uint64_t values_bytes = 0;  ///< Bytes of values, in `values` or in puts.
  std::uint64_t budget_bytes = 0;
  std::uint64_t extra_bytes = 0;  ///< Still to be acquired before encoding.
  double encode_s = 0;            ///< Forecast; 0: unknown.
};

/// Totals of a set of staged chunks.
struct StagedAmount {
  std::size_t n_chunks = 0;
  std::uint64_t values_bytes = 0;
  std::uint64_t budget_bytes = 0;  ///< Memory that they hold.

  void add(const StagedChunk& chunk) {
    ++n_chunks;
    values_bytes += chunk.values_bytes;
    budget_bytes += chunk.budget_bytes;
  }
  void remove(const StagedChunk& chunk) {
    --n_chunks;
    values_bytes -= chunk.values_bytes;
    budget_bytes -= chunk.budget_bytes;
  }
};

class EncodeLane {
 public:
  /// @param threads   all of its helpers encode. Without helpers (none requested, or the system
  /// refuses), chunks wait for encode_here().
  /// @param waits     null, or the last helper encodes only while the program waits in MPI.
  /// @param encoded   receives each finished chunk; called from any thread.
  /// @param activity  called after each chunk; from any thread.
  EncodeLane(ThreadTeam& threads, IdleWaits* waits, Tail& tail, std::span<const FieldPlan> plans,
             MemoryBudget& budget, std::int32_t rank, const LaneClock& clock, Trace* trace,
             std::function<void(EncodedChunk)> encoded, std::function<void()> activity);
  ~EncodeLane();

  /// Queue a chunk. Thread-safe.
  void push(StagedChunk chunk);
  /// Keep the encode threads asleep: on a machine with few cores they would preempt the submitting
  /// thread. Ends automatically once many bytes wait, since then every thread has enough to do.
  void hold_back();
  /// End hold_back() and wake the threads. From here on the program's waits in MPI are used, too.
  void let_go();
  /// Encode one waiting chunk on the calling thread, which is lane 0: the chunk that the lane rule
  /// picks for `outlook`. @returns false if no chunk waits, fits, or can get its memory.
  bool encode_here(const LaneOutlook& outlook);
  /// Number of encode threads that always encode.
  std::uint64_t n_threads() const { return n_threads_; }
  /// Most chunks that are encoded at the same time, the caller's of encode_here() included.
  std::uint64_t n_at_once() const { return n_threads_ + (waits_ != nullptr ? 2 : 1); }
  /// Totals of the chunks that wait for a thread. Thread-safe.
  StagedAmount waiting() const;
  /// True if no chunk waits and none is being encoded. Thread-safe.
  bool idle() const;
  /// Wait until all chunks are encoded or dropped and the threads rest.
  void finish();
  /// The first failure, if any. Thread-safe.
  Status status() const;

  /// After finish(): sums per plan of what this rank encoded; busy intervals of all threads.
  std::vector<FieldTally>& tallies() { return tallies_; }
  const BusyIntervals& busy() const { return busy_; }
  /// After finish(): the part of `busy` that began while the program waited in MPI, and its chunks.
  const BusyIntervals& in_waits() const { return in_waits_; }
  std::uint64_t n_in_waits() const { return n_in_waits_; }

 private:
  using Place = std::deque<StagedChunk>::iterator;

  void wake_one();
  void wake_for(std::size_t n_chunks);
  void run(std::int32_t lane_number);
  void encode_in_waits();
  Place affordable(const Place& wished);
  StagedChunk take(const Place& place);
  void encode(StagedChunk chunk, std::int32_t lane_number);
  Status encode_catching(StagedChunk& chunk, std::int32_t lane_number);
  Status encode_and_hand_on(StagedChunk& chunk, std::int32_t lane_number);
  void hand_on(StagedChunk& chunk, EncodedChunk encoded, const ChunkOutcome& outcome,
               double encode_s);
  void record(const StagedChunk& chunk, std::int32_t lane_number, double start_s, double end_s,
              double verify_s);

  Tail& tail_;
  std::span<const FieldPlan> plans_;
  MemoryBudget& budget_;
  std::int32_t rank_;
  const LaneClock& clock_;
  Trace* trace_;
  std::function<void(EncodedChunk)> encoded_;
  std::function<void()> activity_;

  mutable std::mutex mutex_;
  std::condition_variable rested_;  ///< Notified when no thread is active.
  std::deque<StagedChunk> waiting_;
  StagedAmount amount_waiting_;
  std::size_t n_running_ = 0;
  bool held_back_ = false;
  std::vector<bool> at_work_;  ///< True for each thread from its wake-up until it rests.
  std::size_t n_at_work_ = 0;
  Status status_;
  std::vector<FieldTally> tallies_;
  BusyIntervals busy_;
  ThreadTeam& threads_;
  std::uint64_t n_threads_ = 0;
  IdleWaits* waits_ = nullptr;         ///< Null: not loaded, not wanted, or no thread is left.
  std::condition_variable finishing_;  ///< Ends a nap of encode_in_waits().
  bool is_finishing_ = false;
  bool in_waits_at_work_ = false;  ///< The helper for waits is posted.
  BusyIntervals in_waits_;
  std::uint64_t n_in_waits_ = 0;
};

}  // namespace tailrace
