// StagingLog: the puts of one rank to one variable since the last flush, in their order.
//
// Values are copied once into memory blocks. Beyond a cap, blocks lie in an unlinked, memory-mapped
// file, and the kernel decides which pages stay in memory. A put that continues the previous one
// (the next row or element) is merged with it. So a variable written row by row, or element by
// element in row-major order, ends as a few boxes.
// When several such streams alternate, each full block is sorted: adjacent entries are merged, and
// entries that a later put of the block covers are dropped. A call that puts very many pieces is
// sorted immediately. If it does not reduce to a few boxes, it becomes one "scattered" entry: runs
// of elements. Later entries win where they overlap. Between ranks, the epoch decides which put is
// later; an entry merged from several epochs records them per run of elements.
// Cost of a put: the copy (twice if its block is sorted) and memory for the entry.
//  Merged with other epochs: 16 bytes.
//  Not merged: 24 bytes, and 16 per dimension (24 if strided).
//  Scattered: 12 bytes per run.
// Looking up the staged values of a slab costs O(log entries + entries that touch it).
//
// Invariant 1: of two overlapping puts, the later one is in a later entry, or the earlier one is
// gone. Invariant 2: where puts of one rank overlap, their epochs ascend.

#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "array/element_runs.hpp"
#include "core/box_index.hpp"
#include "core/slab.hpp"
#include "trz/base/status.hpp"

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

  /// @error out_of_memory; no_space, io_error (spill file)
  Result<Block> allocate(std::uint64_t n_bytes);
  void release(const Block& block);
  /// Count the memory of the entries that describe the values.
  void add_overhead(std::int64_t n_bytes) {
    overhead_bytes_ += static_cast<std::uint64_t>(n_bytes);
  }

  std::uint64_t held_bytes() const { return heap_bytes_ + overhead_bytes_; }
  std::uint64_t spilled_bytes() const { return spilled_bytes_; }
  std::uint64_t cap_bytes() const { return cap_bytes_; }
  /// True if staging exceeds its cap, so that a flush is due.
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

/// Run of elements of a dense array that were put in one epoch: from the end of the previous run up
/// to `end`.
struct StagedRun {
  std::uint64_t end = 0;
  std::uint64_t epoch = 0;
};

/// Decompose elements [first, end) of `box`, row-major, into boxes, and visit these in order.
void for_each_box_of_run(const Box& box, std::uint64_t first, std::uint64_t end,
                         const std::function<void(const Box&)>& visit);

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

  /// Stage the values of one non-empty slab. @error like StagingMemory::allocate
  Status put(const Slab& slab, std::span<const std::byte> values, std::uint64_t epoch = 0);
  /// Stage the pieces of one call: `values` of all runs, in their order. `lengths` are the extents
  /// of the variable, with at least one dimension; only the first extent may ever change.
  Status put(const Shape& lengths, const ElementRuns& runs, std::span<const std::byte> values,
             std::uint64_t epoch = 0);
  /// Upper bound of the bytes that an entry of one slab needs in addition to its values.
  static std::uint64_t entry_bytes(std::size_t rank) {
    return sizeof(Head) + 3 * rank * sizeof(std::uint64_t);
  }
  /// Drop everything.
  void clear();

  bool empty() const { return heads_.empty(); }
  std::size_t n_entries() const { return heads_.size(); }
  /// Slab of an entry that is not scattered.
  Slab slab(std::size_t entry) const;
  /// True if an entry is a list of element runs, all of one epoch, instead of a slab.
  bool scattered(std::size_t entry) const { return heads_[entry].scattered; }
  StoredRuns element_runs(std::size_t entry) const;
  /// Box with as many elements as the entry has, for callers that need only the values.
  Box box_of_values(std::size_t entry) const;
  /// Bounding boxes of the entries, with adjacent ones merged: the access pattern of the puts.
  std::vector<Box> boxes() const;
  const std::byte* values(std::size_t entry) const { return heads_[entry].values; }
  /// Box of a dense entry. For other entries, a box within `shape` of at most as many elements. The
  /// entry's values fill it row by row, as a sample.
  Box box_of_sample(std::size_t entry, const Shape& shape) const;
  bool strided(std::size_t entry) const { return heads_[entry].strided; }
  std::size_t element_bytes() const { return element_bytes_; }
  std::uint64_t value_bytes() const { return value_bytes_; }

  /// Number of single-epoch runs that make up the entry's dense array; at least 1.
  std::size_t n_runs(std::size_t entry) const { return range_of(heads_[entry]).n; }
  StagedRun run(std::size_t entry, std::size_t which) const;
  /// Index of the run that holds an element of the dense array. Cost: O(log runs).
  std::size_t run_at(std::size_t entry, std::uint64_t element) const;
  /// Call visit(slab, epoch, values) for each single-epoch part of an entry.
  using PieceVisit =
      std::function<void(const Slab& slab, std::uint64_t epoch, const std::byte* values)>;
  void for_each_piece(std::size_t entry, const PieceVisit& visit) const;
  /// Put an entry into another log, with its epochs increased by `n_later`. @error like put()
  Status put_into(StagingLog& to, std::size_t entry, std::uint64_t n_later) const;

  /// Copy the staged elements of `wanted` over `values`, its dense array. Not collective.
  /// Cost: O(log entries + entries that touch it + elements copied). If many entries were added
  /// since the last lookup, sorting those, too.
  void lay_over(const Slab& wanted, std::span<std::byte> values) const;

  /// Elements that another rank has put.
  struct Cover {
    Slab slab;
    std::uint64_t epoch = 0;
  };
  /// Run of elements that no later put replaces: `n` elements of the dense array of `piece`, from
  /// `first` on.
  struct Lasting {
    const Slab& piece;
    std::uint64_t first = 0;
    std::uint64_t n = 0;
    std::uint64_t epoch = 0;
    const std::byte* values = nullptr;  ///< Values of the run.
  };
  using LastingVisit = std::function<void(const Lasting& run)>;
  /// Call `visit` for all lasting elements: those replaced neither by a later entry nor by a put of
  /// `others` in a later epoch. Cost: that of lay_over() for each entry, and a bit per element of
  /// each partly replaced entry.
  void for_each_lasting(std::span<const Cover> others, const LastingVisit& visit) const;

 private:
  struct Head {
    std::byte* values = nullptr;
    /// Epoch of all elements. If the entry has several runs, their position instead: (first << 24)
    /// + count.
    std::uint64_t epoch = 0;
    std::uint32_t first_word_low = 0;
    std::uint16_t first_word_high = 0;
    std::uint8_t rank = 0;
    bool strided : 1 = false;
    bool has_runs : 1 = false;
    bool scattered : 1 = false;

    std::size_t first_word() const {
      return (std::size_t{first_word_high} << 32U) + first_word_low;
    }
    void set_first_word(std::size_t word) {
      first_word_low = static_cast<std::uint32_t>(word);
      first_word_high = static_cast<std::uint16_t>(word >> 32U);
    }
    bool dense() const { return !strided && !scattered; }
    /// Words stored per entry: starts and counts, then strides if strided. If scattered, the
    /// extents follow, the first one replaced by the number of elements, and then the number of
    /// runs.
    std::size_t n_words() const {
      return (dense() ? std::size_t{2} : 3) * rank + (scattered ? 1 : 0);
    }
  };
  static_assert(sizeof(Head) == 24);
  struct RunRange {
    std::size_t first = 0;
    std::size_t n = 1;
  };
  struct Batch;

  void swap(StagingLog& other) noexcept;
  std::span<std::uint64_t> words(const Head& head);
  std::span<const std::uint64_t> words(const Head& head) const;
  std::uint64_t n_elements(const Head& head) const;
  void bounding_words(const Head& head, std::span<std::uint64_t> box) const;
  std::uint64_t run_bytes(const Head& head) const;
  Status put_boxes(const Shape& lengths, const ElementRuns& runs, std::span<const std::byte> values,
                   std::uint64_t epoch);
  Status put_scattered(const Shape& lengths, const SortedRuns& sorted,
                       std::span<const std::byte> values, std::uint64_t epoch);
  /// Visit the boxes of the runs that overlap elements `begin` to `last`.
  void for_each_scattered_box(std::size_t entry, std::uint64_t begin, std::uint64_t last,
                              const PieceVisit& visit) const;
  /// Call visit(slab, values) for the elements of entries from `first_entry` on whose boxes touch
  /// `wanted`, in entry order.
  using SlabVisit = std::function<void(const Slab& slab, const std::byte* values)>;
  void for_each_touching(const Slab& wanted, std::size_t first_entry, const SlabVisit& visit) const;
  void visit_scattered(std::size_t entry, const Slab& wanted, const SlabVisit& visit) const;
  bool overwrite_last(const SortedRuns& sorted, std::span<const std::byte> values,
                      std::uint64_t epoch);
  static void copy_in_order(const SortedRuns& sorted, std::span<const std::byte> values,
                            std::size_t element_bytes, std::byte* to);
  static RunRange range_of(const Head& head);
  void add_run(Head& head, std::uint64_t n_before, StagedRun run);
  void count_overhead() const;
  Result<std::byte*> room_for(std::uint64_t n_bytes);
  bool overwrite_last(const Slab& slab, std::span<const std::byte> values, std::uint64_t epoch);
  bool join_last();
  void sort_last_block();
  void sort_last_block_into(std::optional<StagingMemory::Block>& block);
  void drop_covered(Batch& batch) const;
  void find_lone(Batch& batch) const;
  void chain_neighbours(Batch& batch) const;
  void rewrite_last_block(const Batch& batch, const StagingMemory::Block& block);

  StagingMemory* memory_ = nullptr;
  std::size_t element_bytes_ = 1;
  std::vector<Head> heads_;
  std::vector<std::uint64_t> words_;
  std::deque<StagedRun> runs_;  ///< Ordered like the entries.
  std::vector<StagingMemory::Block> blocks_;
  std::size_t first_in_block_ = 0;      ///< The first entry whose values lie in the last block.
  std::uint64_t next_block_bytes_ = 0;  ///< 0: no block yet.
  /// Full blocks to skip before the next attempt to sort one.
  std::uint32_t n_unsorted_ = 0;
  /// Consecutive attempts to sort a block that did not reduce it.
  std::uint32_t n_in_vain_ = 0;
  std::uint64_t value_bytes_ = 0;
  // Caches of lookups.
  mutable BoxIndex index_;
  mutable std::uint64_t counted_overhead_bytes_ = 0;
};

}  // namespace tailrace
