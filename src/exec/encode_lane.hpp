// The threads that encode, and the way of one chunk through them.

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
#include "exec/io_lane.hpp"
#include "exec/lane_clock.hpp"
#include "exec/thread_team.hpp"
#include "schedule/lane_rule.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- One chunk's way through the CPU lane: gather its values, encode, check, fall back where
// needed.

/// A buffer for the values of one chunk, filled where no rank's part will be: holes and, for
/// growing datasets, the pad get the fill value; else uninitialised.
/// @param budget  of which it is a block; null: a block of its own. @error out_of_memory
Result<Buffer> make_chunk_buffer(const FieldPlan& plan, const ChunkJob& job,
                                 MemoryBudget* budget = nullptr);

/// Copy this rank's parts of the chunk into its buffer. @param values  as of make_chunk_buffer.
void gather_local_parts(const FieldPlan& plan, const ChunkJob& job, Buffer& values);

/// Repeat the last values of each row, plane, ... into the part of an edge chunk that lies beyond
/// the field's shape, so that the pad costs next to nothing to encode.
void pad_edges(const FieldPlan& plan, const ChunkJob& job, Buffer& values);

/// The chunk's values where they already lie, if they can be written from there: no filter, nothing
/// to verify, and one run of one put's memory. Empty otherwise.
std::span<const std::byte> borrow_values(const FieldPlan& plan, const ChunkJob& job);

struct ChunkOutcome {
  EncodedBytes encoded;
  bool stored_raw = false;  ///< The codec could not keep the bound here; the bytes are unfiltered.
  double max_error = 0;     ///< If verified.
  double verify_s = 0;
};

/// Encode a complete chunk, and verify it if the plan says so. The values stay where the codec or a
/// check of it has no use for their memory, else `values` is empty afterwards. Not collective.
/// Thread-safe.
/// @error codec_failed, bound_broken  with fall_back_to_raw off; the text names field and chunk.
Result<ChunkOutcome> encode_chunk(const FieldPlan& plan, std::uint64_t chunk_index, Buffer& values);

/// The chunk with every filter skipped: HDF5 stores and reads it as it is, so each value is exact.
ChunkOutcome store_raw(const FieldPlan& plan, Buffer values);

/// The most memory that one chunk of this field holds while it is encoded, for the budget.
std::uint64_t encode_memory_bytes(const FieldPlan& plan);

// --- EncodeLane: the threads of a rank that turn staged chunks into encoded ones.
//
// The threads are a team's, which stays from step to step: they come when chunks do, and rest again
// when none waits.
//
// Invariant 1: a chunk's budget shrinks to the bytes of its encoded form before it is handed on.
// Invariant 2: after the first failure, here or elsewhere on the node, chunks are dropped unencoded
// and their memory is given back, so that the queue always drains.
// Invariant 3: while a chunk waits and nothing holds the lane back, as many threads are at work as
// there are, or as chunks have come since the lane rested.

/// A chunk whose foreign values have arrived; this rank's own are gathered by the encode thread.
struct StagedChunk {
  const ChunkJob* job = nullptr;
  Buffer values;                        ///< Unallocated: all values are in this rank's puts.
  std::optional<EncodedBytes> encoded;  ///< By its source: nothing is left to do.
  bool gathered =
      false;  ///< `values` holds this rank's own, too: the puts are not needed any more.
  std::uint64_t values_bytes = 0;  ///< Of the chunk, whether in `values` or in puts.
  std::uint64_t budget_bytes = 0;
  std::uint64_t extra_bytes = 0;  ///< To be taken from the budget before it is encoded.
  double encode_s = 0;            ///< As forecast; 0: not known.
};

/// What is staged somewhere, together.
struct StagedAmount {
  std::size_t n_chunks = 0;
  std::uint64_t values_bytes = 0;
  std::uint64_t budget_bytes = 0;  ///< Memory that they have taken.

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
  /// `encoded` takes the finished chunks, `activity` is called after each; both from any thread.
  /// All helpers of `threads` encode. Without any, chunks wait for encode_here(): none were asked
  /// for, or the system refuses.
  EncodeLane(ThreadTeam& threads, Tail& tail, std::span<const FieldPlan> plans,
             MemoryBudget& budget, std::int32_t rank, const LaneClock& clock, Trace* trace,
             std::function<void(EncodedChunk)> encoded, std::function<void()> activity);
  ~EncodeLane();

  /// Hand a chunk over. Thread-safe.
  void push(StagedChunk chunk);
  /// Leave the threads asleep for now: where cores are few they would take them from who hands
  /// chunks over. Only until much waits: then there is enough to do for all.
  void hold_back();
  void let_go();
  /// Encode one of the waiting chunks on the calling thread, which is lane 0: the one that the lane
  /// rule picks for `outlook`. @returns false if nothing waits, fits, or has its memory.
  bool encode_here(const LaneOutlook& outlook);
  /// Threads that there are.
  std::uint64_t n_threads() const { return n_threads_; }
  /// What waits for a thread. Thread-safe.
  StagedAmount waiting() const;
  /// Nothing waits and nothing is being encoded. Thread-safe.
  bool idle() const;
  /// Wait until all is encoded or dropped, and the threads rest.
  void finish();
  /// The first failure, if any. Thread-safe.
  Status status() const;

  /// After finish(): per plan, what this rank encoded; the busy intervals of all threads.
  std::vector<FieldTally>& tallies() { return tallies_; }
  const BusyIntervals& busy() const { return busy_; }

 private:
  using Place = std::deque<StagedChunk>::iterator;

  void wake_one();
  void wake_for(std::size_t n_chunks);
  void run(std::int32_t lane_number);
  Place affordable(const Place& wished);
  StagedChunk take(const Place& place);
  void encode(StagedChunk chunk, std::int32_t lane_number);
  Status encode_or_say(StagedChunk& chunk, std::int32_t lane_number);
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
  std::condition_variable rested_;  ///< No thread is at work.
  std::deque<StagedChunk> waiting_;
  StagedAmount amount_waiting_;
  std::size_t n_running_ = 0;
  bool held_back_ = false;
  std::vector<bool> at_work_;  ///< By thread, whether it was called and has not gone to rest since.
  std::size_t n_at_work_ = 0;
  Status status_;
  std::vector<FieldTally> tallies_;
  BusyIntervals busy_;
  ThreadTeam& threads_;
  std::uint64_t n_threads_ = 0;
};

}  // namespace tailrace
