// IoLane: the thread of a rank that writes. Encoded chunks gather while it is busy and leave
// together.
//
// The lane takes everything that waits, up to the write buffer's size, as one write: while storage
// is slow the writes grow large by themselves, and while it is fast no byte waits for company. For
// chunks without an address it claims one at the file's tail per write; chunks that have one
// (dense, contiguous) are joined with the neighbours that follow them directly.
//
// Invariant 1: bytes are in the file before their chunk appears in written().
// Invariant 2: after the first failed write nothing more is written; memory is still given back.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <thread>
#include <vector>

#include "core/buffer.hpp"
#include "core/comm.hpp"
#include "core/status.hpp"
#include "core/storage.hpp"
#include "core/trace.hpp"
#include "exec/field_plan.hpp"
#include "exec/lane_clock.hpp"
#include "exec/memory_budget.hpp"

namespace tailrace {

/// An encoded chunk on its way to storage.
struct EncodedChunk {
  WrittenChunk chunk;  ///< Its address is set by the lane, or with `placed`.
  bool placed = false;
  Buffer bytes;
  std::span<const std::byte> borrowed;  ///< Instead of `bytes`: the caller's own memory.
  std::uint64_t budget_bytes = 0;       ///< To be given back once written.

  std::span<const std::byte> data() const { return borrowed.empty() ? bytes.bytes() : borrowed; }
};

class IoLane {
 public:
  struct Settings {
    std::uint64_t write_buffer_bytes = 16U << 20;
    std::uint64_t alignment_bytes = 1;
    std::int32_t rank = 0;
  };

  /// `activity` is called after each write, from the lane's thread.
  IoLane(Storage& storage, Tail& tail, std::span<const FieldPlan> plans, MemoryBudget& budget,
         const Settings& settings, const LaneClock& clock, Trace* trace,
         std::function<void()> activity);
  ~IoLane();

  /// Hand a chunk over. Thread-safe.
  void push(EncodedChunk chunk);
  /// Wait until all that was pushed is written (or dropped after a failure), then end the thread.
  void finish();
  /// Nothing waits and nothing is being written. Thread-safe.
  bool idle() const;
  /// The first failure, if any. Thread-safe.
  Status status() const;

  /// After finish(): what was written, where; the busy intervals; the number of writes.
  std::vector<WrittenChunk>& written() { return written_; }
  const BusyIntervals& busy() const { return busy_; }
  std::uint64_t n_writes() const { return n_writes_; }

 private:
  void run();
  std::vector<EncodedChunk> take_batch();
  Status write_batch(std::vector<EncodedChunk>& batch);
  void place_batch(std::vector<EncodedChunk>& batch);

  Storage& storage_;
  Tail& tail_;
  std::span<const FieldPlan> plans_;
  MemoryBudget& budget_;
  Settings settings_;
  const LaneClock& clock_;
  Trace* trace_;
  std::function<void()> activity_;

  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<EncodedChunk> waiting_;
  bool writing_ = false;
  bool finishing_ = false;
  Status status_;

  std::vector<WrittenChunk> written_;
  BusyIntervals busy_;
  std::uint64_t n_writes_ = 0;
  std::thread thread_;
};

}  // namespace tailrace
