// IoLane: the thread of a rank that writes. Encoded chunks queue up while it is busy and are
// written together.
//
// The lane takes all waiting chunks, up to the write buffer's size, as one write. So writes grow
// large while storage is slow, and no byte waits for others while it is fast. Each write of chunks
// without an address makes one claim at the file's tail, or takes the next bytes of the rank's
// arena. A full arena continues at the tail. Chunks with an address (all other layouts) are joined
// with the neighbours that directly follow them.
//
// The lane yields to the application in mode in_situ. It starts no write while the application uses
// the lane, and none that would last until the application is expected to use it. It stops yielding
// when a caller waits for the step.
//
// If ranks of a node write for each other (exec/shared_writes.hpp), the lane writes gifts of other
// ranks while it has no write of this rank.
//
// With writers=node, one rank of a node, the writer, does the writes of all, alternating between
// its own and those of other ranks. The lanes of the other ranks pass each write on and wait for
// it. So layouts and the joining of chunks work unchanged.
//
// The thread belongs to a ThreadTeam that persists from step to step. It wakes when a chunk arrives
// and rests when none waits; if it may write for other ranks, it stays active until the step ends.
// If the system refuses the thread, each pushing thread writes the waiting chunks.
//
// Invariant 1: bytes are in the file before their chunk appears in written().
// Invariant 2: after the first failed write nothing more is written; memory is still released.
// Invariant 3: the thread needs no memory to take a chunk, to write or drop it, and to go to rest.

#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "core/comm.hpp"
#include "core/storage.hpp"
#include "core/trace.hpp"
#include "exec/block_keep.hpp"
#include "exec/chunk_homes.hpp"
#include "exec/field_plan.hpp"
#include "exec/lane_clock.hpp"
#include "exec/placer.hpp"
#include "exec/shared_writes.hpp"
#include "exec/thread_team.hpp"
#include "schedule/lane_rule.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Source of an encoded chunk's address.
enum class AddressFrom : std::uint8_t {
  tail,   ///< Claimed by the I/O lane, once per write.
  arena,  ///< The next bytes of the rank's arena, once per write.
  place   ///< The chunk already has its address.
};

/// An encoded chunk on its way to storage.
struct EncodedChunk {
  WrittenChunk chunk;
  const ChunkJob* job = nullptr;
  AddressFrom address_from = AddressFrom::tail;
  double held_since_s = 0;  ///< Layout dense: when it began to wait for the sums of its round.
  /// Position in the plan's order of writes; ties go in order of arrival.
  std::size_t write_position = 0;
  Buffer bytes;
  bool is_values = false;               ///< `bytes` is the block that held the values.
  std::span<const std::byte> borrowed;  ///< Used instead of `bytes`: the caller's own memory.
  std::uint64_t budget_bytes = 0;       ///< Released once the chunk is written.

  std::span<const std::byte> data() const { return borrowed.empty() ? bytes.bytes() : borrowed; }
};

/// The application's needs of the I/O lane (mode in_situ), and the forecast duration of writes.
struct WriteThrottle {
  /// Returns the lane's current outlook; any thread. Empty: the application does not use the lane.
  std::function<LaneOutlook()> outlook;
  double write_latency_s = 0;
  double write_s_per_byte = 0;

  double seconds(std::uint64_t n_bytes) const {
    return write_latency_s + write_s_per_byte * static_cast<double>(n_bytes);
  }
};

class IoLane {
 public:
  struct Settings {
    std::uint64_t write_buffer_bytes = 16U << 20;
    std::uint64_t alignment_bytes = 1;
    std::int32_t rank = 0;
    WriteThrottle regard;
    SharedWrites* shared = nullptr;  ///< Writes of other ranks, if any.
    int node_writer = -1;        ///< Rank on the node that writes for all; -1: each rank writes.
    bool sync_behind = false;    ///< Sync the storage after this rank's last chunk.
    std::uint64_t n_chunks = 0;  ///< Number of this rank's chunks in the step.
  };

  /// @param placer    owns the arena; null if no chunk goes there.
  /// @param threads   one of its helpers writes.
  /// @param activity  called after each write, from the lane's thread.
  IoLane(Storage& storage, Tail& tail, Placer* placer, std::span<const FieldPlan> plans,
         MemoryBudget& budget, const Settings& settings, ThreadTeam& threads,
         const LaneClock& clock, Trace* trace, std::function<void()> activity);
  ~IoLane();

  /// Queue a chunk. Thread-safe. Does not throw: without memory the step fails.
  void push(EncodedChunk chunk);
  /// Notify the lane that the application's needs have changed.
  void look_again() { wake_.notify_one(); }
  /// Postpone the writes of pushed chunks if the lane has no thread and claims need messages. In
  /// the application's own time, a claim could wait for a rank that waits for the application. Main
  /// thread.
  void leave_waiting(bool leave);
  /// Write without regard to the application from now on, since a caller waits for the step.
  void hurry();
  /// Wait until every pushed chunk is written (or dropped after a failure) and the thread rests.
  void finish();
  /// Claim an address at the file's tail. Thread-safe.
  std::uint64_t claim(std::uint64_t n_bytes);
  /// Claim an address if that needs no message. Thread-safe.
  std::optional<std::uint64_t> claim_at_once(std::uint64_t n_bytes);
  /// Count one of this rank's chunks that was given to another rank. Thread-safe.
  void count_given() { ++n_given_; }
  /// Write bytes of another rank of the node, and account for them. Called by the lane's thread, or
  /// after that has ended.
  Status write_foreign(std::uint64_t address, std::span<const std::byte> bytes);
  /// Write one gift, if this rank is the node's writer and has no thread. Called now and then, so
  /// that no rank waits for it forever. Main thread.
  void write_given_without_thread();
  /// Sync what was written since the last sync. After finish().
  Status sync_rest() { return settings_.sync_behind && unsynced_ ? sync() : Status(); }
  /// True if no chunk waits and none is being written. Thread-safe.
  bool idle() const;
  /// The first failure, if any. Thread-safe.
  Status status() const;

  /// After finish(): the written chunks with their addresses; busy intervals; number of writes.
  std::vector<WrittenChunk>& written() { return written_; }
  const BusyIntervals& busy() const { return busy_; }
  /// Intervals spent in claims; negligible within a node.
  const BusyIntervals& claiming() const { return claiming_; }
  std::uint64_t n_writes() const { return n_writes_; }
  /// Chunks of this rank that the node's writer wrote; time of writes for other ranks.
  std::uint64_t n_passed_on() const { return n_passed_on_; }
  double foreign_s() const { return foreign_s_; }
  double sync_s() const { return sync_s_; }

 private:
  /// Chunks that become one write.
  struct Batch {
    std::vector<EncodedChunk> chunks;
    std::optional<Tail::Claim> claim;  ///< Set once it has been started.
  };

  void wake();
  Status queue(EncodedChunk& chunk);
  void fail(Status failure);
  Status no_memory_for(const EncodedChunk& chunk) const;
  void run();
  void write_waiting();
  void write_or_drop();
  Status write_taken();
  bool take_batch();
  void take_from(Batch& batch, std::size_t first, const LaneOutlook& outlook);
  void claim_ahead();
  std::optional<std::size_t> pick(LaneOutlook& outlook);
  bool write_for_others(std::unique_lock<std::mutex>& lock);
  void write_task(const SharedWrites::Task& task);
  bool regards_application() const;
  Status write_batch();
  bool passes_on() const;
  bool writes_for_node() const;
  bool expects_gifts() const;
  Status pass_on(std::span<const std::span<const std::byte>> pieces);
  Status sync();
  bool joins(const EncodedChunk& last, const EncodedChunk& next, std::uint64_t batch_bytes) const;
  std::uint64_t arena_address(std::uint64_t n_bytes);
  static std::uint64_t bytes_of(const Batch& batch);
  void place_batch();
  Tail::Claim start_claim(std::uint64_t n_bytes);
  std::uint64_t finish_claim(Tail::Claim& claim);

  Storage& storage_;
  Tail& tail_;
  Placer* placer_;
  std::span<const FieldPlan> plans_;
  MemoryBudget& budget_;
  Settings settings_;
  const LaneClock& clock_;
  Trace* trace_;
  std::function<void()> activity_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable rested_;  ///< Notified when the thread rests.
  std::deque<EncodedChunk> waiting_;
  bool at_work_ = false;  ///< True from the thread's wake-up until it rests.
  bool writing_ = false;
  bool hurried_ = false;
  std::atomic<bool> leaves_waiting_ = false;
  bool finishing_ = false;
  Status status_;

  Batch batch_;                    ///< Batch being written; owned by the thread that set writing_.
  Batch next_;                     ///< Taken ahead, if any; owned by the lane's thread.
  std::vector<double> lengths_s_;  ///< Scratch of pick(): durations of the waiting writes.
  std::vector<WrittenChunk> written_;
  BusyIntervals busy_;
  BusyIntervals claiming_;
  std::uint64_t n_writes_ = 0;
  std::uint64_t n_passed_on_ = 0;
  double foreign_s_ = 0;
  double sync_s_ = 0;
  std::atomic<std::uint64_t> n_given_{0};
  bool unsynced_ = false;  ///< Something was written since the last sync.
  ThreadTeam& threads_;
  bool has_thread_ = false;
};

}  // namespace tailrace
