// ConcatWriteLane: writes the chunks of a concatenation over a rank's I/O lane.
//
// Layout claimed: chunks go to the I/O lane immediately; it claims addresses for all that wait.
// Layout dense: chunks wait for the end of the round; a prefix sum over the ranks gives
// them addresses in the order of the line, without gaps. Small encoded chunks that are equal can be
// stored once: the first is written, and the others are listed with its address. This excludes
// datasets without filters, whose chunks HDF5 changes in place.
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

/// Location of a written chunk; sent to rank 0 as raw bytes.
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
    std::optional<std::uint64_t> address;  ///< Set for contiguous data, which need no entry.
    Buffer bytes;
    bool alone = false;  ///< Never share this chunk's bytes.
  };

  ConcatWriteLane(Storage& storage, Tail& tail, const Settings& settings);

  /// Submit a chunk; blocks while more than two write buffers are pending. Thread-safe.
  void push(Chunk chunk);
  /// Wait until all submitted chunks are in the file, or return an error. Collective with layout
  /// dense (a prefix sum and an allreduce), else local. @error no_space, io_error
  Status finish_round(Comm& comm);
  /// Entries since the last call.
  std::vector<WrittenPlace> take_written();

  double busy_s() const { return total_s(lane_.busy().merged()); }  ///< Valid after finish_round().
  std::uint64_t n_shared() const { return n_shared_; }
  /// Largest number of pending bytes.
  std::uint64_t peak_bytes() const { return peak_bytes_; }

 private:
  /// Chunk that is in the file or about to be written (dedup).
  struct Stored {
    std::uint64_t place = 0;
    std::uint64_t address = 0;
  };
  /// Chunk that shares the bytes of another one (dedup).
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
  std::mutex mutex_;  ///< Guards the members below, except lane and budget.
  std::condition_variable moved_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  std::vector<Chunk> held_;  ///< Chunks of layout dense, until the round ends.
  std::vector<WrittenPlace> written_;
  std::unordered_map<std::string, Stored> stored_;  ///< Keyed by encoded bytes; nodes do not move.
  std::uint64_t stored_bytes_ = 0;
  std::vector<Stored*> unplaced_;  ///< Chunks in stored_ of this round.
  std::vector<Twin> twins_;        ///< Twins of this round.
  std::uint64_t n_shared_ = 0;

  LaneClock clock_;
  MemoryBudget waiting_;  ///< Bytes that the lane has to write.
  ThreadTeam threads_{2};
  IoLane lane_;  ///< Last member, so that its thread ends first.
};

}  // namespace tailrace
