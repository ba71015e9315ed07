// IoLane: the thread of a rank that writes. Encoded chunks gather while it is busy and leave
// together.
//
// The lane takes everything that waits, up to the write buffer's size, as one write: while storage
// is slow the writes grow large by themselves, and while it is fast no byte waits for company. For
// chunks without an address it claims one at the file's tail per write, or takes the next bytes of
// the rank's arena, which goes on at the tail when it is full; chunks that have one (all other
// layouts) are joined with the neighbours that follow them directly.
//
// In mode in_situ the lane has regard for the application: it starts no write while the application
// uses the lane, nor one that would not end before it is expected to, until somebody waits for the
// step.
//
// Where ranks of a node write for each other (exec/shared_writes.hpp), the lane takes what others
// have given it while it has nothing of its own to write.
//
// With writers=node one rank of a node, its writer, takes them in turn with its own, and the lanes
// of the others write nothing: they pass each write on and wait for it. So whatever a layout does,
// and a lane joins, holds there too.
//
// The thread is a team's, which stays from step to step: it comes when something waits, and rests
// again when nothing does; where it may write for others, it stays until the step ends. Where the
// system refuses it, whoever pushes writes what waits.
//
// Invariant 1: bytes are in the file before their chunk appears in written().
// Invariant 2: after the first failed write nothing more is written; memory is still given back.
// Invariant 3: the thread needs no memory to take a chunk, write or drop it and go to rest.

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

/// Where an encoded chunk's address comes from.
enum class AddressFrom : std::uint8_t {
  tail,   ///< Claimed by the I/O lane, once per write.
  arena,  ///< The next bytes of the rank's arena, once per write.
  place   ///< It has one already.
};

/// An encoded chunk on its way to storage.
struct EncodedChunk {
  WrittenChunk chunk;
  const ChunkJob* job = nullptr;
  AddressFrom address_from = AddressFrom::tail;
  double held_since_s = 0;         ///< Layout dense: when it began to wait for its round's sums.
  std::size_t write_position = 0;  ///< In the plan's order of writes; equals go as they come.
  Buffer bytes;
  bool is_values = false;               ///< `bytes` is the block that the values came in.
  std::span<const std::byte> borrowed;  ///< Instead of `bytes`: the caller's own memory.
  std::uint64_t budget_bytes = 0;       ///< To be given back once written.

  std::span<const std::byte> data() const { return borrowed.empty() ? bytes.bytes() : borrowed; }
};

/// What the application needs of the I/O lane (mode in_situ), and how long writes are.
struct WriteRegard {
  /// The lane's outlook now; any thread. Empty: the lane is ours alone.
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
    WriteRegard regard;
    SharedWrites* shared = nullptr;  ///< Where other ranks' writes come from, if any do.
    int node_writer = -1;            ///< The rank on the node that writes all; -1: each its own.
    bool sync_behind = false;        ///< Sync the storage behind this rank's last chunk.
    std::uint64_t n_chunks = 0;      ///< Of this rank's step.
  };

  /// @param placer    of the arena; null where no chunk comes from there.
  /// @param threads   of which one helper writes.
  /// @param activity  called after each write, from the lane's thread.
  IoLane(Storage& storage, Tail& tail, Placer* placer, std::span<const FieldPlan> plans,
         MemoryBudget& budget, const Settings& settings, ThreadTeam& threads,
         const LaneClock& clock, Trace* trace, std::function<void()> activity);
  ~IoLane();

  /// Hand a chunk over. Thread-safe. Does not throw: without memory the step has failed.
  void push(EncodedChunk chunk);
  /// The application's needs have changed: look again.
  void look_again() { wake_.notify_one(); }
  /// In the application's own time, where there is no thread: what is pushed waits until later,
  /// since a claim could wait for a rank that waits for the application. Main thread.
  void leave_waiting(bool leave);
  /// Somebody waits for the step: write without regard to the application from now on.
  void hurry();
  /// Wait until all that was pushed is written (or dropped after a failure) and the thread rests.
  void finish();
  /// An address at the file's tail. Thread-safe.
  std::uint64_t claim(std::uint64_t n_bytes);
  /// The same if that takes no message. Thread-safe.
  std::optional<std::uint64_t> claim_at_once(std::uint64_t n_bytes);
  /// One of this rank's chunks has been given to another rank. Thread-safe.
  void count_given() { ++n_given_; }
  /// Write what ranks of the node give each other, and account for it. Called by the lane's
  /// thread, or once that has ended.
  Status write_foreign(std::uint64_t address, std::span<const std::byte> bytes);
  /// Without a thread the node's writer is to do this now and then, so that nobody waits for it in
  /// vain. Main thread.
  void write_given_without_thread();
  /// Make durable what was written since the last sync. After finish().
  Status sync_rest() { return settings_.sync_behind && unsynced_ ? sync() : Status(); }
  /// Nothing waits and nothing is being written. Thread-safe.
  bool idle() const;
  /// The first failure, if any. Thread-safe.
  Status status() const;

  /// After finish(): what was written, where; the busy intervals; the number of writes.
  std::vector<WrittenChunk>& written() { return written_; }
  const BusyIntervals& busy() const { return busy_; }
  /// The time spent in claims: nothing to speak of within a node.
  const BusyIntervals& claiming() const { return claiming_; }
  std::uint64_t n_writes() const { return n_writes_; }
  /// This rank's chunks that the node's writer wrote; the time of writes for others.
  std::uint64_t n_passed_on() const { return n_passed_on_; }
  double foreign_s() const { return foreign_s_; }
  double sync_s() const { return sync_s_; }

 private:
  /// Chunks that become one write.
  struct Batch {
    std::vector<EncodedChunk> chunks;
    std::optional<Tail::Claim> claim;  ///< Where it has been begun.
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
  std::condition_variable rested_;  ///< The thread is not at work.
  std::deque<EncodedChunk> waiting_;
  bool at_work_ = false;  ///< The thread was called and has not gone to rest since.
  bool writing_ = false;
  bool hurried_ = false;
  std::atomic<bool> leaves_waiting_ = false;
  bool finishing_ = false;
  Status status_;

  Batch batch_;                    ///< Being written; whoever set writing_ has it.
  Batch next_;                     ///< Taken meanwhile, if any; the thread's.
  std::vector<double> lengths_s_;  ///< Of the chunks that wait, for pick().
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
