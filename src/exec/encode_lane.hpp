// EncodeLane: the threads of a rank that turn staged chunks into encoded ones.
//
// Invariant 1: a chunk's budget shrinks to the bytes of its encoded form before it is handed on.
// Invariant 2: after the first failure, here or elsewhere on the node, chunks are dropped unencoded
// and their memory is given back, so that the queue always drains.

#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/comm.hpp"
#include "core/trace.hpp"
#include "exec/encode_chunk.hpp"
#include "exec/field_plan.hpp"
#include "exec/io_lane.hpp"
#include "exec/lane_clock.hpp"
#include "exec/memory_budget.hpp"
#include "schedule/lane_rule.hpp"

namespace tailrace {

/// A chunk whose foreign values have arrived; this rank's own are gathered by the encode thread.
struct StagedChunk {
  const ChunkJob* job = nullptr;
  Buffer values;  ///< Unallocated: all values are in this rank's puts.
  bool gathered =
      false;  ///< `values` holds this rank's own, too: the puts are not needed any more.
  std::uint64_t budget_bytes = 0;
  std::uint64_t extra_bytes = 0;  ///< To be taken from the budget before it is encoded.
  double encode_s = 0;            ///< As forecast; 0: not known.
};

class EncodeLane {
 public:
  /// `encoded` takes the finished chunks, `activity` is called after each; both from any thread.
  /// Without threads, chunks wait for encode_here().
  EncodeLane(std::uint64_t n_threads, Tail& tail, std::span<const FieldPlan> plans,
             MemoryBudget& budget, std::int32_t rank, const LaneClock& clock, Trace* trace,
             std::function<void(EncodedChunk)> encoded, std::function<void()> activity);
  ~EncodeLane();

  /// Hand a chunk over. Thread-safe.
  void push(StagedChunk chunk);
  /// Encode one of the waiting chunks on the calling thread, which is lane 0: the one that the lane
  /// rule picks for `outlook`. @returns false if nothing waits, fits, or has its memory.
  bool encode_here(const LaneOutlook& outlook);
  /// Chunks that wait for a thread. Thread-safe.
  std::size_t n_waiting() const;
  /// Nothing waits and nothing is being encoded. Thread-safe.
  bool idle() const;
  /// Wait until all is encoded or dropped, then end the threads.
  void finish();
  /// The first failure, if any. Thread-safe.
  Status status() const;

  /// After finish(): per plan, what this rank encoded; the busy intervals of all threads.
  const std::vector<FieldTally>& tallies() const { return tallies_; }
  const BusyIntervals& busy() const { return busy_; }

 private:
  void run(std::int32_t lane_number);
  void take_extra(StagedChunk& chunk);
  void encode(StagedChunk chunk, std::int32_t lane_number);
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
  std::condition_variable wake_;
  std::deque<StagedChunk> waiting_;
  std::size_t n_running_ = 0;
  bool finishing_ = false;
  Status status_;
  std::vector<FieldTally> tallies_;
  BusyIntervals busy_;
  std::vector<std::thread> threads_;
};

}  // namespace tailrace
