// BlockKeep: cache of memory blocks for chunk values; it lives as long as the file.
// MemoryBudget: cap on the memory that the chunks of one file use.
//
// malloc maps large blocks from the system and unmaps them when they are freed. Every step would
// then touch each page of its values for the first time, which takes longer than copying the
// values. The pages of a cached block are mapped already.
//
// Invariant 1: bytes held under the budget and cached bytes together stay within its cap; cached
// blocks are freed to make room. Only MemoryBudget::take() may exceed the cap.
// Invariant 2: a block that goes unused for a complete step is freed.

#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <mutex>
#include <utility>

#include "trz/base/buffer.hpp"

namespace tailrace {

/// Cache of blocks, by size. Thread-safe.
class BlockKeep {
 public:
  /// Return a block of `n_bytes`, uninitialised: the cached block of exactly this size that was
  /// returned last, or a new one. Unallocated if memory is short.
  Buffer take(std::uint64_t n_bytes);
  /// Cache a block. Small blocks are freed instead, since malloc caches those itself.
  void give(Buffer block);
  /// Free cached blocks, smallest first, until at most `n_bytes` are cached.
  void shrink_to(std::uint64_t n_bytes);
  /// End a step: free the cached blocks that were not returned during it.
  void end_step();

  std::uint64_t kept_bytes() const;
  /// Number of cacheable blocks that take() allocated because no cached one fitted.
  std::uint64_t n_new() const;

 private:
  struct Kept {
    Buffer block;
    std::uint64_t step = 0;  ///< Step in which the block was returned.
  };
  using Blocks = std::multimap<std::uint64_t, Kept>;  ///< Keyed by capacity.

  Blocks::iterator drop(Blocks::iterator place);

  mutable std::mutex mutex_;
  Blocks blocks_;
  std::uint64_t kept_bytes_ = 0;
  std::uint64_t n_new_ = 0;
  std::uint64_t step_ = 0;
};

/// Accounts for the memory of one file's chunks. Thread-safe.
class MemoryBudget {
 public:
  /// @param blocks  cache that shrinks as the budget is used; null: nothing is cached.
  explicit MemoryBudget(std::uint64_t cap_bytes, BlockKeep* blocks = nullptr)
      : cap_bytes_(cap_bytes), blocks_(blocks) {}

  /// Acquire `n_bytes` if at least `keep_free_bytes` of the cap stay free afterwards.
  bool try_take(std::uint64_t n_bytes, std::uint64_t keep_free_bytes = 0);
  /// Acquire `n_bytes` even beyond the cap.
  void take(std::uint64_t n_bytes);
  void give_back(std::uint64_t n_bytes);

  /// Return a block for values whose budget is already acquired. Unallocated if memory is short.
  Buffer new_block(std::uint64_t n_bytes) {
    return blocks_ == nullptr ? Buffer(n_bytes) : blocks_->take(n_bytes);
  }
  /// Cache a block whose budget is still held, if the cap has room for both.
  void keep(Buffer block);

  std::uint64_t held_bytes() const {
    const std::scoped_lock lock(mutex_);
    return held_bytes_;
  }
  /// Largest number of bytes that were ever held and cached together.
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
