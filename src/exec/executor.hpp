// Executor: compresses and writes concurrently. Runs one rank's part of a step, from owned chunks
// to written bytes.
//
//   main thread        stage: take memory, pull values, ask other ranks for pieces, serve theirs
//   encode threads     gather, encode, verify                       (encode_lane)
//   I/O lane           claim an address, write                      (io_lane)
//
// All MPI and HDF5 calls happen on the main thread. A layout that must know all sizes first (dense)
// works in rounds: encoded chunks are held until the ranks have added up their sizes. The sums are
// nonblocking, so that a waiting rank still serves pieces. With all other layouts, a chunk's
// address is known when it is encoded (placer) or when it is written (io_lane).
//
// run() does everything in one call. In the modes async and in_situ the main thread is only
// available for a while. hand_over() takes all values and serves the other ranks, so that the
// remaining work needs no MPI. Then the lanes continue in the background, helped by encode_here()
// whenever the application is idle. finish() does the rest. A layout in rounds cannot be handed
// over.
//
// Invariant 1: the memory held for chunks (staged, encoding, waiting for a write, given to other
// ranks) is at most the budget. A chunk is staged only after its worst case has been acquired.
// Invariant 2: a rank leaves run() only when it owes no piece to any rank, also after a failure.
// Invariant 3: every rank takes part in every round, with zero bytes if it has none or has failed.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <thread>
#include <vector>

#include "core/comm.hpp"
#include "core/storage.hpp"
#include "core/trace.hpp"
#include "exec/block_keep.hpp"
#include "exec/chunk_homes.hpp"
#include "exec/encode_lane.hpp"
#include "exec/field_plan.hpp"
#include "exec/idle_waits.hpp"
#include "exec/io_lane.hpp"
#include "exec/lane_clock.hpp"
#include "exec/placer.hpp"
#include "exec/shared_writes.hpp"
#include "exec/thread_team.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// True if encoded chunks must wait until all ranks know their sizes: rounds of the main threads.
inline bool needs_rounds(const Layout& layout) {
  return layout.base_from() == BaseFrom::prefix && layout.sizes_needed() == SizesNeeded::actual;
}

/// Resources that a file's lanes reuse from step to step: their threads, which sleep in between,
/// and memory.
struct LaneStock {
  /// @param n_encode_threads  0: the main thread encodes.
  /// @param manners  of the threads: `waiting` if the main thread computes concurrently.
  /// @param idle_waits  null, or one more thread encodes while the program waits in MPI.
  LaneStock(std::uint64_t n_encode_threads, ThreadPriority manners, IdleWaits* idle_waits = nullptr)
      : waits(idle_waits),
        encoders(n_encode_threads + (waits != nullptr ? 2 : 1), manners),
        writer(2, manners) {}
  IdleWaits* waits;
  ThreadTeam encoders;
  ThreadTeam writer;
  BlockKeep blocks;
};

/// Settings of one step.
struct ExecutorSettings {
  std::uint64_t memory_bytes = 1ULL << 30;
  std::uint64_t write_buffer_bytes = 16U << 20;
  std::uint64_t alignment_bytes = 1;
  /// The order in which jobs are staged: a permutation of their indices; empty: as given.
  std::vector<std::size_t> order;
  std::vector<std::size_t> write_order;  ///< Same for writes; empty: in the order of encoding.
  std::vector<double> encode_s;          ///< Forecast encode time by job; empty: unknown.
  WriteThrottle regard;                  ///< Needs of the application, after hand_over().
  SharedWrites* shared = nullptr;        ///< Writes that ranks of a node do for each other.
  int node_writer = -1;       ///< writers=node: the rank on the node that writes for all of it.
  std::vector<int> writers;   ///< Rank on the node that writes each job; -1, or empty: this rank.
  Status failure;             ///< Known before the start: the rank only takes part.
  bool sync_behind = false;   ///< The I/O lane syncs the storage after its last write.
  Reservations reservations;  ///< Result of reserve_places(), if any layout of the step reserves.
  Trace* trace = nullptr;
  std::function<void()> progress;  ///< Called on the main thread about ten times a second.
};

/// Results of this rank's part of the step.
struct ExecutorReport {
  std::vector<FieldTally> tallies;  ///< One per plan.
  std::vector<WrittenChunk> written;
  double read_s = 0;    ///< Pulling values from sources.
  double encode_s = 0;  ///< Time in which at least one thread encoded.
  double write_s = 0;   ///< Time in which the I/O lane wrote.
  double hidden_s = 0;  ///< Time in which both happened.
  double wait_s = 0;    ///< Time in which at least one encoded chunk waited for an address.
  double makespan_s = 0;
  double encode_here_s = 0;          ///< Encoding in idle time, by the main thread or in waits.
  std::uint64_t n_in_waits = 0;      ///< Chunks encoded while the program waited in MPI.
  double short_of_memory_s = 0;      ///< hand_over(): time spent waiting for memory.
  std::uint64_t n_moved_writes = 0;  ///< This rank's chunks that other ranks wrote.
  double foreign_write_s = 0;        ///< Part of write_s, for other ranks.
  double sync_s = 0;                 ///< Set with sync_behind, if anything was written.
  std::uint64_t n_writes = 0;
  std::uint64_t piece_bytes = 0;
  std::uint64_t peak_memory_bytes = 0;
};

class Executor {
 public:
  Executor(Comm& comm, Tail& tail, Storage& storage, std::span<const FieldPlan> plans,
           const Ownership& ownership, const ExecutorSettings& settings, LaneStock& stock,
           const LaneClock& clock);
  ~Executor();
  Executor(const Executor&) = delete;
  Executor& operator=(const Executor&) = delete;

  /// Do all of this rank's jobs and serve the other ranks. Collective.
  /// @returns this rank's own failure; the caller must agree on it. `report` is filled in any case.
  Status run(ExecutorReport& report);

  /// Take all chunks' values and serve the other ranks. Afterwards, until finish(), the step needs
  /// no values of the callers except under `keep_puts`. It needs no MPI except for tail extents,
  /// see attend(). Waits if memory is short. Collective in effect, since it answers requests.
  /// @param keep_puts  the callers keep their values until finish(): they are not copied.
  /// @param before_waiting  called each time before it waits, for other ranks or for memory.
  void hand_over(bool keep_puts, const std::function<void()>& before_waiting);
  /// Encode a chunk on the calling (main) thread. @returns false if no chunk waits or fits.
  bool encode_here(const LaneOutlook& outlook);
  /// Same as encode_here() in the application's own time: never waits for other ranks.
  bool encode_in_idle_time(const LaneOutlook& outlook);
  /// Advance the work that needs the main thread. Never waits. Main thread only.
  void attend() { tail_.service(); }
  /// Notify the I/O lane that the application's needs of it have changed. Any thread.
  void look_again() { io_lane_.look_again(); }
  /// True if a chunk waits for a thread or for encode_here().
  bool waits_for_encoding() const { return encode_lane_.waiting().n_chunks > 0; }
  /// Complete the step without regard to the application. Collective, like run(), which calls it.
  Status finish(ExecutorReport& report);

 private:
  /// State of a dense layout's round: collect sizes, add them up over the ranks, get the base
  /// address.
  enum class Round : std::uint8_t { collecting, adding, basing, none };

  void check_start();
  Status check_memory() const;
  std::uint64_t job_memory_bytes(const ChunkJob& job) const;
  std::uint64_t values_bytes(const ChunkJob& job) const;
  std::uint64_t held_bytes(const ChunkJob& job) const;
  /// The job at `position` in the order of work.
  const ChunkJob& job_at(std::size_t position) const {
    return ownership_.jobs[settings_.order.empty() ? position : settings_.order[position]];
  }
  void serve_and_stage();
  void take_turn();
  void make_room(std::uint64_t seen);
  bool enough_staged(const StagedAmount& to_come) const;
  bool take_budget(std::uint64_t n_bytes, std::uint64_t keep_free_bytes);
  bool stage_next();
  bool hold_next();
  void stage(const ChunkJob& job, std::uint64_t budget_bytes);
  Status try_stage(const ChunkJob& job, std::uint64_t budget_bytes);
  Status pull(const ChunkJob& job, Buffer& values);
  Result<std::optional<EncodedBytes>> pull_stored(const ChunkJob& job);
  void encode(StagedChunk chunk);
  void chunk_encoded();
  void take_encoded(EncodedChunk chunk);
  bool give_away(EncodedChunk& chunk);
  void pieces_arrived(ChunkKey key);
  void finish_shared(ExecutorReport& report);
  Status fill(ExecutorReport& report);
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
  std::uint64_t window_bytes_ = 0;  ///< Reserved for gifts while the file is open.
  MemoryBudget budget_;
  BlockKeep& blocks_;

  std::mutex mutex_;  ///< Guards n_active_ and held_.
  std::condition_variable activity_;
  std::uint64_t n_active_ = 0;
  std::vector<EncodedChunk> held_;  ///< Encoded, waiting for the base address of their round.

  enum class Holding : std::uint8_t {
    no,      ///< run(): values are gathered during encoding.
    values,  ///< Handed over, with a copy of all values.
    puts     ///< Handed over; the callers keep their values.
  };
  Holding holding_ = Holding::no;
  /// Most memory, of all jobs, that encoding takes in addition to the values.
  std::uint64_t largest_extra_bytes_ = 0;
  /// Write position of each job; empty: writes are done in order of arrival.
  std::vector<std::size_t> write_positions_;
  double start_s_ = 0;
  double short_of_memory_s_ = 0;
  BusyIntervals encoding_here_;

  std::size_t next_job_ = 0;            ///< Position in the order of work.
  const ChunkJob* unstaged_ = nullptr;  ///< Staging failed; its holders must still be notified.
  std::thread::id main_thread_ = std::this_thread::get_id();
  // Flags that the lanes check before they wake the main thread.
  std::atomic<bool> out_of_budget_{false};  ///< Staging waits for memory.
  std::atomic<bool> all_staged_{false};
  std::atomic<bool> encodes_here_{false};   ///< Only the main thread encodes.
  std::atomic<std::size_t> n_encoding_{0};  ///< Chunks that wait for encoding or are being encoded.
  std::map<ChunkKey, StagedChunk> awaiting_pieces_;
  StagedAmount amount_awaiting_;
  Round round_ = Round::none;
  std::vector<EncodedChunk> round_chunks_;
  std::uint64_t round_before_ = 0;
  bool round_is_last_ = false;
  std::unique_ptr<PendingSum> sum_;
  BusyIntervals reading_;
  BusyIntervals waiting_;  ///< Waiting for the sums of a round.
  Status own_status_;

  // Declared last, so that they end first: their threads use the members above.
  std::unique_ptr<PieceExchange> pieces_;
  Placer placer_;
  IoLane io_lane_;
  EncodeLane encode_lane_;
};

}  // namespace tailrace
