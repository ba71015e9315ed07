// StagingLog: what a rank has put into one variable since the last flush, in the order of the puts.
//
// Values are copied once, into blocks of memory; beyond a cap into an unlinked file, mapped, of
// which the kernel keeps in memory what it likes. A put that continues the one before it (the next
// row, the next element) is merged with it, so that a variable written row by row, or element by
// element in row-major order, ends as a few boxes. Where several such streams alternate, a block
// that is full is sorted: what continues each other in it is merged, and what a later put of it
// covers is dropped. What is put in very many pieces at once is sorted at once, and is one entry of
// runs of elements ("scattered") where it makes no few boxes. Later entries win where they overlap.
// Between ranks the epoch says which is later; an entry of puts of several epochs keeps them, by
// runs of its elements.
// Cost of a put: the copy (twice where a block is sorted), and 16 bytes where it was merged with
// puts of other epochs, 24 + 16 per dimension (24 if strided) where it was not merged; scattered 12
// bytes a run. A look at the staged values of a slab costs O(log entries + those that touch it).
//
// Invariant 1: of two puts that overlap, the later one lies in a later entry, or the earlier one is
// nowhere any more. Invariant 2: where puts of one rank overlap, their epochs ascend.

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

/// Elements of a dense array that were put in one epoch: those up to `end`, behind the run before.
struct StagedRun {
  std::uint64_t end = 0;
  std::uint64_t epoch = 0;
};

/// Call `visit` for boxes that make up the elements [first, end) of `box`, row-major, in order.
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

  /// Stage the values of one slab that has elements. @error as of StagingMemory::allocate
  Status put(const Slab& slab, std::span<const std::byte> values, std::uint64_t epoch = 0);
  /// Stage what one call has put in pieces: the values of all runs, in their order. `lengths` are
  /// the variable's, of at least one dimension, of which only the first may ever change.
  Status put(const Shape& lengths, const ElementRuns& runs, std::span<const std::byte> values,
             std::uint64_t epoch = 0);
  /// What an entry of one slab takes beside its values, at most.
  static std::uint64_t entry_bytes(std::size_t rank) {
    return sizeof(Head) + 3 * rank * sizeof(std::uint64_t);
  }
  /// Drop everything.
  void clear();

  bool empty() const { return heads_.empty(); }
  std::size_t n_entries() const { return heads_.size(); }
  /// Where an entry's elements are. Not of a scattered one.
  Slab slab(std::size_t entry) const;
  /// Whether an entry has runs of elements, all of one epoch, in place of a slab.
  bool scattered(std::size_t entry) const { return heads_[entry].scattered; }
  StoredRuns element_runs(std::size_t entry) const;
  /// A box of as many elements as the entry has, and which of one: for who asks for values alone.
  Box box_of_values(std::size_t entry) const;
  /// The bounding boxes of the entries, of which those that continue each other are one: how the
  /// variable is being put.
  std::vector<Box> boxes() const;
  const std::byte* values(std::size_t entry) const { return heads_[entry].values; }
  /// An entry's box; or, where it is none, one within `shape` that its values could fill, row by
  /// row and but for a few at their end: for samples.
  Box box_of_sample(std::size_t entry, const Shape& shape) const;
  bool strided(std::size_t entry) const { return heads_[entry].strided; }
  std::size_t element_bytes() const { return element_bytes_; }
  std::uint64_t value_bytes() const { return value_bytes_; }

  /// Of which epochs an entry's elements are: run by run of its dense array; at least one.
  std::size_t n_runs(std::size_t entry) const { return range_of(heads_[entry]).n; }
  StagedRun run(std::size_t entry, std::size_t which) const;
  /// The run in which an element of the dense array lies. Cost: O(log runs).
  std::size_t run_at(std::size_t entry, std::uint64_t element) const;
  /// Call visit(slab, epoch, values) for the parts of an entry that are of one epoch each.
  using PieceVisit =
      std::function<void(const Slab& slab, std::uint64_t epoch, const std::byte* values)>;
  void for_each_piece(std::size_t entry, const PieceVisit& visit) const;
  /// Put an entry into another log, too, as of `n_later` epochs later. @error as of put()
  Status put_into(StagingLog& to, std::size_t entry, std::uint64_t n_later) const;

  /// Lay the staged elements of `wanted` over `values`, its dense array. Not collective.
  /// Cost: O(log entries + entries that touch it + elements laid); beyond a few entries, and what
  /// was put since it was last asked, also their sorting.
  void lay_over(const Slab& wanted, std::span<std::byte> values) const;

  /// Elements of another rank.
  struct Cover {
    Slab slab;
    std::uint64_t epoch = 0;
  };
  /// A run of elements that no later put replaces: `n` of a piece's dense array, from `first` on.
  struct Lasting {
    const Slab& piece;
    std::uint64_t first = 0;
    std::uint64_t n = 0;
    std::uint64_t epoch = 0;
    const std::byte* values = nullptr;  ///< Of the run.
  };
  using LastingVisit = std::function<void(const Lasting& run)>;
  /// Call `visit` for all elements that last: replaced neither by a later entry nor by a put of
  /// `others` in a later epoch. Cost: that of lay_over() for each entry, and a bit per element of
  /// an entry that is replaced in part.
  void for_each_lasting(std::span<const Cover> others, const LastingVisit& visit) const;

 private:
  struct Head {
    std::byte* values = nullptr;
    /// Of all its elements; of an entry of several runs, where these stand: first * 2^24 + number.
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
    /// Starts and counts; strides; or the variable's lengths, but the first is the number of
    /// elements, and the number of runs.
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
  /// Of the runs that lie, in part at least, among the elements from `begin` to `last`.
  void for_each_scattered_box(std::size_t entry, std::uint64_t begin, std::uint64_t last,
                              const PieceVisit& visit) const;
  /// Call visit(slab, values) for the elements of entries from `first_entry` on whose boxes touch
  /// `wanted`, in the order of the entries.
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
  std::deque<StagedRun> runs_;  ///< In the order of the entries.
  std::vector<StagingMemory::Block> blocks_;
  std::size_t first_in_block_ = 0;      ///< The first entry whose values lie in the last block.
  std::uint64_t next_block_bytes_ = 0;  ///< 0: the first.
  std::uint32_t n_unsorted_ = 0;        ///< Full blocks to leave as they are, since sorting has
  std::uint32_t n_in_vain_ = 0;         ///< come to nothing so many times in a row.
  std::uint64_t value_bytes_ = 0;
  // Made when values are looked at.
  mutable BoxIndex index_;
  mutable std::uint64_t counted_overhead_bytes_ = 0;
};

}  // namespace tailrace
