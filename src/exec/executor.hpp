// Executor: compress and write at once. One rank's part of a step, from owned chunks to written
// bytes.
//
//   main thread        stage: take memory, pull values, ask other ranks for pieces, serve theirs
//   encode threads     gather, encode, verify                       (encode_lane)
//   I/O lane           claim an address, write                      (io_lane)
//
// All MPI and HDF5 calls happen on the main thread. A layout that must know all sizes first (dense)
// works in rounds: encoded chunks are held until the ranks have added up their sizes; the sums are
// nonblocking, so that a waiting rank still serves pieces.
//
// Invariant 1: what is in memory for chunks (staged, encoding, waiting for a write) is at most the
//   budget; a chunk is staged only once its worst case has been taken from it.
// Invariant 2: a rank leaves run() only when it owes no piece to anybody, also after a failure.
// Invariant 3: every rank takes part in every round, with zero bytes if it has none or has failed.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "core/comm.hpp"
#include "core/status.hpp"
#include "core/storage.hpp"
#include "core/trace.hpp"
#include "exec/encode_lane.hpp"
#include "exec/field_plan.hpp"
#include "exec/io_lane.hpp"
#include "exec/lane_clock.hpp"
#include "exec/memory_budget.hpp"
#include "exec/piece_exchange.hpp"

namespace tailrace {

struct ExecutorSettings {
  std::uint64_t n_threads = 1;
  std::uint64_t memory_bytes = 1ULL << 30;
  std::uint64_t write_buffer_bytes = 16U << 20;
  std::uint64_t alignment_bytes = 1;
  Trace* trace = nullptr;
  std::function<void()> progress;  ///< Called on the main thread about ten times a second.
};

/// What this rank did.
struct ExecutorReport {
  std::vector<FieldTally> tallies;  ///< One per plan.
  std::vector<WrittenChunk> written;
  double read_s = 0;    ///< Pulling values from sources.
  double encode_s = 0;  ///< Time in which at least one thread encoded.
  double write_s = 0;   ///< Time in which the I/O lane wrote.
  double hidden_s = 0;  ///< Time in which both happened.
  double makespan_s = 0;
  std::uint64_t n_writes = 0;
  std::uint64_t piece_bytes = 0;
  std::uint64_t peak_memory_bytes = 0;
};

class Executor {
 public:
  Executor(Comm& comm, Tail& tail, Storage& storage, std::span<const FieldPlan> plans,
           const Ownership& ownership, const ExecutorSettings& settings, const LaneClock& clock);

  /// Do all of this rank's jobs and serve the others. Collective.
  /// @returns this rank's own failure; the caller agrees. `report` is filled in any case.
  Status run(ExecutorReport& report);

 private:
  /// A dense layout's round: collect sizes, add them up over the ranks, learn the base address.
  enum class Round : std::uint8_t { collecting, adding, basing, none };

  Status check_memory() const;
  std::uint64_t job_memory_bytes(const ChunkJob& job) const;
  bool stage_next();
  void stage(const ChunkJob& job, std::uint64_t budget_bytes);
  Status pull(const ChunkJob& job, Buffer& values);
  void take_encoded(EncodedChunk chunk);
  void advance_round();
  void place_round(std::uint64_t base);
  void cancel_rest();
  bool finished() const;
  std::uint64_t n_active();
  void wait_for_activity(std::uint64_t seen);
  void signal_activity();
  void fail(const Status& failure);
  bool failed() const;

  Comm& comm_;
  Tail& tail_;
  std::span<const FieldPlan> plans_;
  const Ownership& ownership_;
  ExecutorSettings settings_;
  const LaneClock& clock_;
  MemoryBudget budget_;

  std::mutex mutex_;  ///< Guards n_active_ and held_.
  std::condition_variable activity_;
  std::uint64_t n_active_ = 0;
  std::vector<EncodedChunk> held_;  ///< Encoded, waiting for their round's base address.

  std::size_t next_job_ = 0;
  bool out_of_budget_ = false;
  std::map<ChunkKey, StagedChunk> awaiting_pieces_;
  Round round_ = Round::none;
  std::vector<EncodedChunk> round_chunks_;
  std::uint64_t round_before_ = 0;
  bool round_is_last_ = false;
  std::unique_ptr<PendingSum> sum_;
  BusyIntervals reading_;
  Status own_status_;

  // Last, so that they end first: their threads use what stands above.
  std::unique_ptr<PieceExchange> pieces_;
  IoLane io_lane_;
  EncodeLane encode_lane_;
};

}  // namespace tailrace
