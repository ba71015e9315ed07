// ConcatWriteLane: where the chunks of a concatenation leave for the file, over a rank's I/O lane.
//
// Chunks go to the I/O lane as they come, which claims addresses for all that wait (layout
// claimed); or they wait for the end of the round, and a prefix sum over the ranks gives them
// addresses in the order of the line without a gap (layout dense). Small encoded chunks that are
// equal can be stored once: the first is written, the others are listed with its address. Not
// those of datasets without filters, which HDF5 changes where they lie.
//
// Invariant 1: bytes are in the file before their place appears in take_written().
// Invariant 2: after the first failure nothing more is written, and pushed chunks are dropped.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/comm.hpp"
#include "core/storage.hpp"
#include "exec/io_lane.hpp"
#include "exec/lane_clock.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Where a chunk lies now; sent to rank 0 as it is.
struct WrittenPlace {
  std::uint64_t place = 0;
  std::uint64_t address = 0;
  std::uint64_t encoded_bytes = 0;
  std::uint64_t filter_mask = 0;
};

class ConcatWriteLane {
 public:
  struct Settings {
    std::uint64_t write_buffer_bytes = 16U << 20;  ///< Largest single write.
    bool dense = false;
    bool dedup = false;
  };
  struct Chunk {
    std::uint64_t place = 0;
    std::uint32_t filter_mask = 0;
    std::optional<std::uint64_t> address;  ///< Given: contiguous data, which need no entry.
    Buffer bytes;
    bool alone = false;  ///< Not to be shared.
  };

  ConcatWriteLane(Storage& storage, Tail& tail, const Settings& settings);

  /// Hand a chunk over; waits while more than two write buffers wait. Thread-safe.
  void push(Chunk chunk);
  /// Everything pushed is in the file, or an error. Collective with layout dense (a prefix sum and
  /// an allreduce), else local. @error no_space, io_error
  Status finish_round(Comm& comm);
  /// Entries since the last call.
  std::vector<WrittenPlace> take_written();

  double busy_s() const { return total_s(lane_.busy().merged()); }  ///< After finish_round().
  std::uint64_t n_shared() const { return n_shared_; }
  /// Most bytes that waited.
  std::uint64_t peak_bytes() const { return peak_bytes_; }

 private:
  /// dedup: a chunk that is in the file, or on its way there.
  struct Stored {
    std::uint64_t place = 0;
    std::uint64_t address = 0;
  };
  /// dedup: a chunk whose bytes another one has.
  struct Twin {
    std::uint64_t place = 0;
    std::uint32_t filter_mask = 0;
    std::uint64_t encoded_bytes = 0;
    const Stored* first = nullptr;
  };

  bool has_twin(const Chunk& chunk);
  void write(Chunk chunk);
  void wait_until_idle();
  void place_held(Comm& comm);
  void enter_written();

  Tail& tail_;
  Settings settings_;
  std::mutex mutex_;  ///< Guards what is below, but for the lane and the budget.
  std::condition_variable moved_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  std::vector<Chunk> held_;  ///< Layout dense: until the round ends.
  std::vector<WrittenPlace> written_;
  std::unordered_map<std::string, Stored> stored_;  ///< By encoded bytes; nodes do not move.
  std::uint64_t stored_bytes_ = 0;
  std::vector<Stored*> unplaced_;  ///< In stored_, of this round.
  std::vector<Twin> twins_;        ///< Of this round.
  std::uint64_t n_shared_ = 0;

  LaneClock clock_;
  MemoryBudget waiting_;  ///< What the lane has to write.
  ThreadTeam threads_{2};
  IoLane lane_;  ///< Last, so that its thread ends first.
};

}  // namespace tailrace
