// BlockKeep: blocks of memory for chunks' values, which stay with a file from step to step.
// MemoryBudget: how much memory a file's chunks may have.
//
// malloc gets large blocks from the system and gives them back when they are freed, so that each
// step would touch every page of its values for the first time, which takes longer than copying
// them. What is kept here has its pages already.
//
// Invariant 1: what is held and what is kept are together at most the budget's cap: kept blocks
// give way. Invariant 2: a block that was of no use for a whole step goes.

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "trz/base/buffer.hpp"

namespace tailrace {

/// Thread-safe.
class BlockKeep {
 public:
  /// A block of `n_bytes`, uninitialised: a kept one of that size, of several the one that was
  /// given back last; or a new one. Unallocated if memory is short.
  Buffer take(std::uint64_t n_bytes);
  /// Keep a block; a small one is freed, since malloc keeps such itself.
  void give(Buffer block);
  /// Free blocks until at most `n_bytes` are kept.
  void shrink_to(std::uint64_t n_bytes);
  /// A step is over: free what has not been given back since the one before was.
  void end_step();

  std::uint64_t kept_bytes() const;
  /// Blocks that take() had to get anew, of the size that is kept.
  std::uint64_t n_new() const;

 private:
  struct Kept {
    Buffer block;
    std::uint64_t step = 0;  ///< In which it was given back.
  };
  using Blocks = std::multimap<std::uint64_t, Kept>;  ///< By capacity.

  Blocks::iterator drop(Blocks::iterator place);

  mutable std::mutex mutex_;
  Blocks blocks_;
  std::uint64_t kept_bytes_ = 0;
  std::uint64_t n_new_ = 0;
  std::uint64_t step_ = 0;
};

/// Thread-safe.
class MemoryBudget {
 public:
  /// @param blocks  whose memory gives way; null: nothing is kept.
  explicit MemoryBudget(std::uint64_t cap_bytes, BlockKeep* blocks = nullptr)
      : cap_bytes_(cap_bytes), blocks_(blocks) {}

  /// Take `n_bytes` if they fit under the cap and leave `keep_free_bytes` of it.
  bool try_take(std::uint64_t n_bytes, std::uint64_t keep_free_bytes = 0);
  /// Take `n_bytes` even beyond the cap.
  void take(std::uint64_t n_bytes);
  void give_back(std::uint64_t n_bytes);

  /// A block for values that have taken their budget. Unallocated if memory is short.
  Buffer new_block(std::uint64_t n_bytes) {
    return blocks_ == nullptr ? Buffer(n_bytes) : blocks_->take(n_bytes);
  }
  /// Keep a block whose budget has not been given back yet, if there is room for both.
  void keep(Buffer block);

  std::uint64_t held_bytes() const {
    const std::scoped_lock lock(mutex_);
    return held_bytes_;
  }
  /// The most that was ever held, with what was kept meanwhile.
  std::uint64_t peak_bytes() const {
    const std::scoped_lock lock(mutex_);
    return peak_bytes_;
  }
  std::uint64_t cap_bytes() const { return cap_bytes_; }

 private:
  std::uint64_t kept_bytes() const { return blocks_ == nullptr ? 0 : blocks_->kept_bytes(); }
  void add(std::uint64_t n_bytes);

  mutable std::mutex mutex_;
  std::uint64_t cap_bytes_;
  BlockKeep* blocks_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t peak_bytes_ = 0;
};

}  // namespace tailrace
