// StagingLog: what a rank has put into one variable since the last flush, in the order of the puts.
//
// Values are copied once, into blocks of memory; beyond a cap into an unlinked file, mapped, of
// which the kernel keeps in memory what it likes. A put that continues the one before it (the next
// row, the next element) is merged with it, so that a variable written row by row, or element by
// element in row-major order, ends as a few boxes. Later entries win where they overlap. Between
// ranks the epoch says which is later: it grows with every collective call of the file, and puts of
// different epochs are not merged.
// Cost of a put: the copy, and 32 + 16 bytes per dimension (24 if strided) where it was not merged.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/slab.hpp"
#include "core/status.hpp"

namespace tailrace {

/// Memory for staged values: ordinary memory up to a cap, then an unlinked file.
class StagingMemory {
 public:
  struct Block {
    std::byte* data = nullptr;
    std::uint64_t capacity_bytes = 0;
    std::uint64_t used_bytes = 0;
    bool spilled = false;
    std::uint64_t spill_offset = 0;
  };

  StagingMemory(std::uint64_t cap_bytes, std::string spill_folder)
      : cap_bytes_(cap_bytes), spill_folder_(std::move(spill_folder)) {}
  ~StagingMemory();
  StagingMemory(const StagingMemory&) = delete;
  StagingMemory& operator=(const StagingMemory&) = delete;

  /// @error out_of_memory; no_space, io_error  of the spill file.
  Result<Block> allocate(std::uint64_t n_bytes);
  void release(const Block& block);
  /// Count the entries that go with the values.
  void add_overhead(std::int64_t n_bytes) {
    overhead_bytes_ += static_cast<std::uint64_t>(n_bytes);
  }

  std::uint64_t held_bytes() const { return heap_bytes_ + overhead_bytes_; }
  std::uint64_t spilled_bytes() const { return spilled_bytes_; }
  std::uint64_t cap_bytes() const { return cap_bytes_; }
  /// More is staged than was meant to be: time for a flush.
  bool over_cap() const { return held_bytes() + spilled_bytes_ > cap_bytes_; }

 private:
  Result<Block> spill(std::uint64_t n_bytes);

  std::uint64_t cap_bytes_;
  std::string spill_folder_;
  std::uint64_t heap_bytes_ = 0;
  std::uint64_t overhead_bytes_ = 0;
  std::uint64_t spilled_bytes_ = 0;
  int spill_file_ = -1;
  std::uint64_t spill_end_ = 0;
};

class StagingLog {
 public:
  StagingLog(StagingMemory& memory, std::size_t element_bytes)
      : memory_(&memory), element_bytes_(element_bytes) {}
  ~StagingLog() { clear(); }
  StagingLog(StagingLog&& other) noexcept { swap(other); }
  StagingLog& operator=(StagingLog&& other) noexcept {
    swap(other);
    return *this;
  }

  /// Stage the values of one slab that has elements. @error as of StagingMemory::allocate
  /// @param epoch  not less than that of the put before.
  Status put(const Slab& slab, std::span<const std::byte> values, std::uint64_t epoch = 0);
  /// What an entry takes beside its values, at most.
  static std::uint64_t entry_bytes(std::size_t rank) {
    return sizeof(Head) + 3 * rank * sizeof(std::uint64_t);
  }
  /// Drop everything.
  void clear();

  bool empty() const { return heads_.empty(); }
  std::size_t n_entries() const { return heads_.size(); }
  Slab slab(std::size_t entry) const;
  /// The bounding boxes of the entries, of which those that continue each other are one, whatever
  /// their epochs: how the variable is being put.
  std::vector<Box> boxes() const;
  const std::byte* values(std::size_t entry) const { return heads_[entry].values; }
  bool strided(std::size_t entry) const { return heads_[entry].strided; }
  std::uint64_t epoch(std::size_t entry) const { return heads_[entry].epoch; }
  std::size_t element_bytes() const { return element_bytes_; }
  std::uint64_t value_bytes() const { return value_bytes_; }

  /// Lay the staged elements of `wanted` over `values`, its dense array. Not collective.
  /// Cost: O(entries + elements laid).
  void lay_over(const Slab& wanted, std::span<std::byte> values) const;

 private:
  struct Head {
    std::byte* values = nullptr;
    std::uint64_t n_bytes = 0;
    std::uint64_t epoch = 0;
    std::uint16_t rank = 0;
    bool strided = false;
    std::size_t first_word = 0;  ///< starts, counts and, if strided, strides.
  };
  void swap(StagingLog& other) noexcept;
  std::span<std::uint64_t> words(const Head& head);
  Result<std::byte*> room_for(std::uint64_t n_bytes);
  bool overwrite_last(const Slab& slab, std::span<const std::byte> values, std::uint64_t epoch);
  bool join_last();

  StagingMemory* memory_ = nullptr;
  std::size_t element_bytes_ = 1;
  std::vector<Head> heads_;
  std::vector<std::uint64_t> words_;
  std::vector<StagingMemory::Block> blocks_;
  std::uint64_t value_bytes_ = 0;
  std::uint64_t counted_overhead_bytes_ = 0;
};

}  // namespace tailrace
