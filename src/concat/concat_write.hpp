// ConcatWriteLane: the thread of a rank that writes the chunks of a concatenation.
//
// Chunks gather while it is busy and leave together, at an address claimed for all of them (layout
// claimed); or they wait for the end of the round, and a prefix sum over the ranks gives them
// addresses in the order of the line without a gap (layout dense). Small encoded chunks that are
// equal can be stored once. exec/io_lane.hpp does more of this kind for a simulation's steps; here
// nobody computes beside us, and chunks carry places instead of jobs.
//
// Invariant 1: bytes are in the file before their place appears in take_written().
// Invariant 2: after the first failure nothing more is written, and pushed chunks are dropped.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core/buffer.hpp"
#include "core/comm.hpp"
#include "core/status.hpp"
#include "core/storage.hpp"

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
  };

  ConcatWriteLane(Storage& storage, Tail& tail, const Settings& settings);
  ~ConcatWriteLane();

  /// Hand a chunk over; waits while more than two write buffers wait. Thread-safe.
  void push(Chunk chunk);
  /// Everything pushed is in the file, or an error. Collective with layout dense (a prefix sum and
  /// a broadcast), else local. @error no_space, io_error
  Status finish_round(Comm& comm);
  /// Entries since the last call.
  std::vector<WrittenPlace> take_written();

  double busy_s() const { return busy_s_; }  ///< After finish_round().
  std::uint64_t n_shared() const { return n_shared_; }
  /// Most bytes that waited.
  std::uint64_t peak_bytes() const { return peak_bytes_; }

 private:
  /// dedup: a chunk whose bytes another one has.
  struct Twin {
    std::uint64_t place = 0;
    std::uint32_t filter_mask = 0;
    std::string bytes;
  };

  void run();
  Status write(std::vector<Chunk>& batch);
  /// @param at  claimed at the tail if not given.
  Status write_run(std::vector<Chunk>& batch, std::optional<std::uint64_t> at);
  bool has_twin(const Chunk& chunk, std::vector<Twin>& twins);
  void enter_twins(const std::vector<Twin>& twins);
  void wait_until_idle();

  Storage& storage_;
  Tail& tail_;
  Settings settings_;
  mutable std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable moved_;
  std::deque<Chunk> waiting_;
  std::uint64_t waiting_bytes_ = 0;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
  bool writing_ = false;
  bool ending_ = false;
  Status status_;
  std::vector<Chunk> held_;  ///< Layout dense: until the round ends.
  std::vector<WrittenPlace> written_;
  /// dedup: encoded bytes of small chunks that are in the file, and their addresses.
  std::unordered_map<std::string, std::uint64_t> stored_;
  std::uint64_t stored_bytes_ = 0;
  std::uint64_t n_shared_ = 0;
  double busy_s_ = 0;
  std::thread thread_;
};

}  // namespace tailrace
