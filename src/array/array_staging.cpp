// StagingMemory, and the StagingLog without its scattered entries: putting, merging, lookup.

#include "array/array_staging.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>
#include <optional>
#include <utility>

#include "core/environment.hpp"
#include "core/file_limit.hpp"
#include "core/options.hpp"
#include "trz/base/large_block.hpp"

namespace tailrace {
namespace {

/// Sizes of the first and the largest blocks of a log. Blocks double, so that many small variables
/// cost little.
constexpr std::uint64_t kFirstBlockBytes = 16U << 10;
constexpr std::uint64_t kLargestBlockBytes = 4U << 20;
constexpr std::uint64_t kPageBytes = 64U << 10;  // multiple of every page size in use

/// Minimum number of entries in a block for sorting.
constexpr std::size_t kLeastToSort = 16;
/// After repeated sorts that did not reduce a block, up to 2 to this power blocks stay unsorted.
constexpr std::uint32_t kMostInVain = 5;
/// Maximum number of candidates examined per entry before it is left as it is. Without a limit,
/// sorting many overlapping puts would take quadratic time.
constexpr std::size_t kMostLooks = 1024;
/// Number of entries scanned linearly before an index is built, and of the latest entries that are
/// not indexed because they may still be merged.
constexpr std::size_t kMostScanned = 64;
constexpr std::size_t kStillOpen = 8;

constexpr unsigned kRunCountBits = 24;  // entries of several puts lie in blocks of at most 4 MiB
static_assert(kLargestBlockBytes < 1U << kRunCountBits);

/// Find the dimension along which box b continues box a, so that both form one row-major box if b
/// follows a in memory. Empty if none.
std::optional<std::size_t> joint(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b,
                                 std::size_t rank) {
  for (std::size_t d = 0; d < rank; ++d) {
    const bool same = a[d] == b[d] && a[rank + d] == b[rank + d];
    if (same && a[rank + d] == 1) continue;
    if (b[d] != a[d] + a[rank + d]) return std::nullopt;
    for (std::size_t e = d + 1; e < rank; ++e) {
      if (a[e] != b[e] || a[rank + e] != b[rank + e]) return std::nullopt;
    }
    return d;
  }
  return std::nullopt;
}

/// Copies the elements that two strided slabs share from one's dense array into the other's.
class Overlay {
 public:
  Overlay(const Slab& from, const Slab& to) : from_(from), to_(to) {}

  /// @returns true if the slabs share elements
  bool match() {
    pairs_.resize(from_.rank());
    for (std::size_t d = 0; d < from_.rank(); ++d) {
      if (!match_dimension(d)) return false;
    }
    return true;
  }
  void copy(const std::byte* from, std::byte* to, std::size_t element_bytes) const {
    copy_dimension(0, from, to, 0, 0, element_bytes);
  }

 private:
  struct Run {  ///< Positions in the two dense arrays, in parallel.
    std::uint64_t from = 0;
    std::uint64_t to = 0;
    std::uint64_t n = 0;
  };

  bool match_dimension(std::size_t d) {
    const std::uint64_t fs = from_.stride_of(d);
    const std::uint64_t ts = to_.stride_of(d);
    const auto end = [](const Slab& slab, std::size_t at, std::uint64_t stride) {
      return slab.start[at] + (slab.count[at] - 1) * stride + 1;
    };
    if (from_.count[d] == 0 || to_.count[d] == 0) return false;
    const std::uint64_t first = std::max(from_.start[d], to_.start[d]);
    const std::uint64_t last = std::min(end(from_, d, fs), end(to_, d, ts));
    if (first >= last) return false;
    if ((fs == 1 || from_.count[d] == 1) && (ts == 1 || to_.count[d] == 1)) {
      pairs_[d].push_back({first - from_.start[d], first - to_.start[d], last - first});
      return true;
    }
    // Walk the slab with the larger stride.
    const bool walk_to = ts >= fs;
    const Slab& walked = walk_to ? to_ : from_;
    const Slab& other = walk_to ? from_ : to_;
    const std::uint64_t step = walk_to ? ts : fs;
    const std::uint64_t other_step = walk_to ? fs : ts;
    const std::uint64_t skip =
        first <= walked.start[d] ? 0 : (first - walked.start[d] + step - 1) / step;
    for (std::uint64_t i = skip; i < walked.count[d]; ++i) {
      const std::uint64_t at = walked.start[d] + i * step;
      if (at >= last) break;
      if ((at - other.start[d]) % other_step != 0) continue;
      const std::uint64_t j = (at - other.start[d]) / other_step;
      add(pairs_[d], walk_to ? j : i, walk_to ? i : j);
    }
    return !pairs_[d].empty();
  }

  static void add(std::vector<Run>& runs, std::uint64_t from, std::uint64_t to) {
    if (!runs.empty() && runs.back().from + runs.back().n == from &&
        runs.back().to + runs.back().n == to) {
      ++runs.back().n;
    } else {
      runs.push_back({from, to, 1});
    }
  }

  void copy_dimension(std::size_t d, const std::byte* from, std::byte* to, std::uint64_t from_at,
                      std::uint64_t to_at, std::size_t element_bytes) const {
    if (d == from_.rank()) {
      std::memcpy(to + to_at * element_bytes, from + from_at * element_bytes, element_bytes);
      return;
    }
    const bool inner = d + 1 == from_.rank();
    for (const Run& run : pairs_[d]) {
      const std::uint64_t from_first = from_at * from_.count[d] + run.from;
      const std::uint64_t to_first = to_at * to_.count[d] + run.to;
      if (inner) {
        std::memcpy(to + to_first * element_bytes, from + from_first * element_bytes,
                    run.n * element_bytes);
        continue;
      }
      for (std::uint64_t i = 0; i < run.n; ++i) {
        copy_dimension(d + 1, from, to, from_first + i, to_first + i, element_bytes);
      }
    }
  }

  const Slab& from_;
  const Slab& to_;
  std::vector<std::vector<Run>> pairs_;
};

}  // namespace

// --- memory

StagingMemory::~StagingMemory() {
  if (spill_file_ >= 0) ::close(spill_file_);
}

Result<StagingMemory::Block> StagingMemory::allocate(std::uint64_t n_bytes) {
  if (held_bytes() + n_bytes > cap_bytes_ && n_bytes >= kFirstBlockBytes) return spill(n_bytes);
  Block block;
  block.data = static_cast<std::byte*>(allocate_block(n_bytes));
  if (block.data == nullptr) return spill(n_bytes);
  block.capacity_bytes = n_bytes;
  heap_bytes_ += n_bytes;
  return block;
}

/// Allocate the block's disk space before mapping it: a full disk is an error here, not a signal
/// later.
Result<StagingMemory::Block> StagingMemory::spill(std::uint64_t n_bytes) {
  if (spill_file_ < 0) {
    const char* temporary = environment_variable("TMPDIR");
    std::string name = !spill_folder_.empty() ? spill_folder_
                       : temporary != nullptr ? temporary
                                              : "/tmp";
    name += "/tailrace-staging-XXXXXX";
    spill_file_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (spill_file_ < 0)
      return status_from_errno(errno, "cannot create staging file \"" + name + "\"");
    ::unlink(name.c_str());
  }
  Block block;
  block.spilled = true;
  block.capacity_bytes = (n_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  const auto start = static_cast<off_t>(spill_end_);
  const FileLimitScope scope;
  const int refused =
      ::posix_fallocate(spill_file_, start, static_cast<off_t>(block.capacity_bytes));
  if (refused != 0) {
    return status_from_errno(refused,
                             "cannot stage " + bytes_text(n_bytes) + " beyond the memory cap");
  }
  void* mapped =
      ::mmap(nullptr, block.capacity_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, spill_file_, start);
  if (mapped == MAP_FAILED) return status_from_errno(errno, "cannot map the staging file");
  block.data = static_cast<std::byte*>(mapped);
  block.spill_offset = spill_end_;
  spill_end_ += block.capacity_bytes;
  spilled_bytes_ += block.capacity_bytes;
  return block;
}

void StagingMemory::release(const Block& block) {
  if (!block.spilled) {
    std::free(block.data);
    heap_bytes_ -= block.capacity_bytes;
    return;
  }
  ::munmap(block.data, block.capacity_bytes);
  spilled_bytes_ -= block.capacity_bytes;
  if (spilled_bytes_ > 0) {
    // Held-back chunks may occupy the rest of the file for long: release this block's space now, if
    // the file system can.
    static_cast<void>(::fallocate(spill_file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  static_cast<off_t>(block.spill_offset),
                                  static_cast<off_t>(block.capacity_bytes)));
    return;
  }
  // The spill file is empty: return its disk space.
  spill_end_ = 0;
  if (::ftruncate(spill_file_, 0) != 0) {
    ::close(spill_file_);
    spill_file_ = -1;
  }
}

// --- the log

namespace {

/// Visit the boxes that make up elements [first, end) of the sub-box whose first `fixed` dimensions
/// are fixed at the position `at`.
void visit_boxes(Box& at, const Box& box, std::size_t fixed, std::uint64_t first, std::uint64_t end,
                 const std::function<void(const Box&)>& visit) {
  if (first == end) return;
  if (fixed == box.rank()) return visit(at);
  std::uint64_t inner = 1;
  for (std::size_t d = fixed + 1; d < box.rank(); ++d) inner *= box.count[d];
  const auto rows = [&](std::uint64_t row, std::uint64_t n, auto&& below) {
    if (n == 0) return;
    at.start[fixed] = box.start[fixed] + row;
    at.count[fixed] = n;
    below();
  };
  std::uint64_t row = first / inner;
  const std::uint64_t last = end / inner;
  if (first % inner != 0) {
    const std::uint64_t until = std::min(end, (row + 1) * inner);
    rows(row, 1,
         [&] { visit_boxes(at, box, fixed + 1, first % inner, until - row * inner, visit); });
    if (until == end) return;
    ++row;
  }
  rows(row, last - row, [&] {
    for (std::size_t d = fixed + 1; d < box.rank(); ++d) {
      at.start[d] = box.start[d];
      at.count[d] = box.count[d];
    }
    visit(at);
  });
  if (end % inner == 0) return;
  rows(last, 1, [&] { visit_boxes(at, box, fixed + 1, 0, end % inner, visit); });
}

}  // namespace

void for_each_box_of_run(const Box& box, std::uint64_t first, std::uint64_t end,
                         const std::function<void(const Box&)>& visit) {
  Box at = box;
  visit_boxes(at, box, 0, first, end, visit);
}

void StagingLog::swap(StagingLog& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(element_bytes_, other.element_bytes_);
  std::swap(heads_, other.heads_);
  std::swap(words_, other.words_);
  std::swap(runs_, other.runs_);
  std::swap(blocks_, other.blocks_);
  std::swap(first_in_block_, other.first_in_block_);
  std::swap(next_block_bytes_, other.next_block_bytes_);
  std::swap(n_unsorted_, other.n_unsorted_);
  std::swap(n_in_vain_, other.n_in_vain_);
  std::swap(value_bytes_, other.value_bytes_);
  std::swap(index_, other.index_);
  std::swap(counted_overhead_bytes_, other.counted_overhead_bytes_);
}

void StagingLog::clear() {
  if (memory_ == nullptr) return;
  for (const StagingMemory::Block& block : blocks_) memory_->release(block);
  std::vector<Head>().swap(heads_);
  std::vector<std::uint64_t>().swap(words_);
  std::deque<StagedRun>().swap(runs_);
  blocks_.clear();
  first_in_block_ = 0;
  next_block_bytes_ = 0;
  n_unsorted_ = n_in_vain_ = 0;
  value_bytes_ = 0;
  index_ = BoxIndex();
  count_overhead();
}

void StagingLog::count_overhead() const {
  const std::uint64_t overhead = heads_.capacity() * sizeof(Head) +
                                 words_.capacity() * sizeof(std::uint64_t) +
                                 runs_.size() * sizeof(StagedRun) + index_.held_bytes();
  if (overhead == counted_overhead_bytes_) return;
  memory_->add_overhead(static_cast<std::int64_t>(overhead - counted_overhead_bytes_));
  counted_overhead_bytes_ = overhead;
}

std::span<std::uint64_t> StagingLog::words(const Head& head) {
  return std::span(words_).subspan(head.first_word(), head.n_words());
}

std::span<const std::uint64_t> StagingLog::words(const Head& head) const {
  return std::span(words_).subspan(head.first_word(), head.n_words());
}

std::uint64_t StagingLog::n_elements(const Head& head) const {
  if (head.scattered) return words(head)[2 * std::size_t{head.rank}];
  std::uint64_t n = 1;
  for (const std::uint64_t count : words(head).subspan(head.rank, head.rank)) n *= count;
  return n;
}

void StagingLog::bounding_words(const Head& head, std::span<std::uint64_t> box) const {
  const std::span<const std::uint64_t> there = words(head);
  const std::size_t rank = head.rank;
  std::copy_n(there.begin(), 2 * rank, box.begin());
  if (!head.strided) return;
  for (std::size_t d = 0; d < rank; ++d) {
    box[rank + d] = (there[rank + d] - 1) * there[2 * rank + d] + 1;
  }
}

Box StagingLog::box_of_values(std::size_t entry) const {
  const Head& head = heads_[entry];
  const auto first = words(head).begin();
  const std::ptrdiff_t rank = head.rank;
  Box box{Shape(first, first + rank), Shape(first + rank, first + 2 * rank)};
  if (head.scattered) {
    std::ranges::fill(box.count, 1);
    box.count.back() = n_elements(head);
  }
  return box;
}

Slab StagingLog::slab(std::size_t entry) const {
  const Head& head = heads_[entry];
  TAILRACE_CHECK(!head.scattered);
  const auto first = words(head).begin();
  const std::ptrdiff_t rank = head.rank;
  Slab slab{Shape(first, first + rank), Shape(first + rank, first + 2 * rank), {}};
  if (head.strided) slab.stride.assign(first + 2 * rank, first + 3 * rank);
  return slab;
}

StagingLog::RunRange StagingLog::range_of(const Head& head) {
  if (!head.has_runs) return {};
  return {head.epoch >> kRunCountBits, head.epoch & ((1U << kRunCountBits) - 1)};
}

StagedRun StagingLog::run(std::size_t entry, std::size_t which) const {
  const Head& head = heads_[entry];
  if (!head.has_runs) return {n_elements(head), head.epoch};
  return runs_[range_of(head).first + which];
}

std::size_t StagingLog::run_at(std::size_t entry, std::uint64_t element) const {
  const RunRange range = range_of(heads_[entry]);
  if (range.n == 1) return 0;
  const auto first = runs_.begin() + static_cast<std::ptrdiff_t>(range.first);
  const auto found =
      std::upper_bound(first, first + static_cast<std::ptrdiff_t>(range.n), element,
                       [](std::uint64_t at, const StagedRun& run) { return at < run.end; });
  return static_cast<std::size_t>(found - first);
}

void StagingLog::for_each_piece(std::size_t entry, const PieceVisit& visit) const {
  if (heads_[entry].scattered) return for_each_scattered_box(entry, 0, UINT64_MAX, visit);
  const Slab whole = slab(entry);
  if (!heads_[entry].has_runs) return visit(whole, heads_[entry].epoch, values(entry));
  const Box box{whole.start, whole.count};
  const std::byte* from = values(entry);
  std::uint64_t first = 0;
  for (std::size_t r = 0; r < n_runs(entry); ++r) {
    const StagedRun here = run(entry, r);
    for_each_box_of_run(box, first, here.end, [&](const Box& part) {
      visit(Slab::of(part), here.epoch, from);
      from += part.n_elements() * element_bytes_;
    });
    first = here.end;
  }
}

Status StagingLog::put_into(StagingLog& to, std::size_t entry, std::uint64_t n_later) const {
  const Head& head = heads_[entry];
  if (head.scattered) {
    const StoredRuns stored = element_runs(entry);
    ElementRuns runs;
    for (std::size_t r = 0; r < stored.size(); ++r) runs.add(stored.first(r), stored.count(r));
    const auto lengths = words(head).subspan(2 * std::size_t{head.rank}, head.rank);
    return to.put({lengths.begin(), lengths.end()}, runs,
                  {head.values, n_elements(head) * element_bytes_}, head.epoch + n_later);
  }
  Status put;
  for_each_piece(entry, [&](const Slab& slab, std::uint64_t epoch, const std::byte* values) {
    if (!put.ok()) return;
    put = to.put(slab, {values, slab.n_elements() * element_bytes_}, epoch + n_later);
  });
  return put;
}

/// Reserve memory directly behind the latest entry, so that the two can be merged; else in a new
/// block.
Result<std::byte*> StagingLog::room_for(std::uint64_t n_bytes) {
  if (!blocks_.empty() && blocks_.back().capacity_bytes - blocks_.back().used_bytes >= n_bytes) {
    StagingMemory::Block& block = blocks_.back();
    return block.data + std::exchange(block.used_bytes, block.used_bytes + n_bytes);
  }
  if (!blocks_.empty()) sort_last_block();
  const std::uint64_t most = std::max(n_bytes, std::max(next_block_bytes_, kFirstBlockBytes));
  TAILRACE_TAKE(StagingMemory::Block block, memory_->allocate(most));
  next_block_bytes_ = std::min(2 * most, kLargestBlockBytes);
  block.used_bytes = n_bytes;
  blocks_.push_back(block);
  first_in_block_ = heads_.size();
  return block.data;
}

Status StagingLog::put(const Slab& slab, std::span<const std::byte> values, std::uint64_t epoch) {
  if (overwrite_last(slab, values, epoch)) return Status();
  TAILRACE_TAKE(auto* room, room_for(values.size()));
  std::memcpy(room, values.data(), values.size());
  value_bytes_ += values.size();
  Head head;
  head.values = room;
  head.epoch = epoch;
  head.set_first_word(words_.size());
  head.rank = static_cast<std::uint8_t>(slab.rank());
  head.strided = !slab.dense();
  words_.insert(words_.end(), slab.start.begin(), slab.start.end());
  words_.insert(words_.end(), slab.count.begin(), slab.count.end());
  if (head.strided) words_.insert(words_.end(), slab.stride.begin(), slab.stride.end());
  heads_.push_back(head);
  while (join_last()) {
  }
  count_overhead();
  return Status();
}

/// Replace the values of the latest entry if the new put has the same slab.
bool StagingLog::overwrite_last(const Slab& slab, std::span<const std::byte> values,
                                std::uint64_t epoch) {
  if (heads_.empty()) return false;
  Head& last = heads_.back();
  if (last.scattered || last.strided == slab.dense()) return false;
  const std::span<const std::uint64_t> there = words(last);
  const auto same = [&](const Shape& shape, std::size_t part) {
    return std::equal(shape.begin(), shape.end(),
                      there.begin() + static_cast<std::ptrdiff_t>(part * last.rank));
  };
  if (!same(slab.start, 0) || !same(slab.count, 1)) return false;
  if (last.strided && !same(slab.stride, 2)) return false;
  std::memcpy(last.values, values.data(), values.size());
  if (last.has_runs) runs_.resize(range_of(last).first);
  last.has_runs = false;
  last.epoch = epoch;
  return true;
}

std::vector<Box> StagingLog::boxes() const {
  std::vector<Box> boxes;
  std::vector<std::uint64_t> last;
  std::vector<std::uint64_t> next;
  for (std::size_t e = 0; e < heads_.size(); ++e) {
    const std::size_t rank = heads_[e].rank;
    next.resize(2 * rank);
    bounding_words(heads_[e], next);
    const auto middle = next.begin() + static_cast<std::ptrdiff_t>(rank);
    Box box{Shape(next.begin(), middle), Shape(middle, next.end())};
    const std::optional<std::size_t> d = boxes.empty() ? std::nullopt : joint(last, next, rank);
    if (d) {
      boxes.back().count[*d] += box.count[*d];
      last[rank + *d] += box.count[*d];
    } else {
      boxes.push_back(std::move(box));
      last = next;
    }
  }
  return boxes;
}

/// Merge the last two entries if they form one box and are contiguous in memory.
bool StagingLog::join_last() {
  if (heads_.size() < first_in_block_ + 2) return false;
  Head& before = heads_[heads_.size() - 2];
  const Head last = heads_.back();
  if (!before.dense() || !last.dense()) return false;
  const std::uint64_t n_before = n_elements(before);
  if (before.values + n_before * element_bytes_ != last.values) return false;
  const std::span<std::uint64_t> to = words(before);
  const std::optional<std::size_t> d = joint(to, words(last), last.rank);
  if (!d) return false;
  if (!last.has_runs) {
    add_run(before, n_before, {n_before + n_elements(last), last.epoch});
  } else {
    const auto first = runs_.begin() + static_cast<std::ptrdiff_t>(range_of(last).first);
    const std::vector<StagedRun> runs(first, runs_.end());
    runs_.resize(range_of(last).first);
    std::uint64_t end = n_before;
    for (const StagedRun& run : runs) {
      add_run(before, std::exchange(end, n_before + run.end), {n_before + run.end, run.epoch});
    }
  }
  to[last.rank + *d] += words(last)[last.rank + *d];
  words_.resize(last.first_word());
  heads_.pop_back();
  index_.forget_from(heads_.size() - 1);
  return true;
}

/// Append a run behind the `n_before` elements of `head`, whose runs are the last ones.
void StagingLog::add_run(Head& head, std::uint64_t n_before, StagedRun run) {
  if (!head.has_runs) {
    if (head.epoch == run.epoch) return;
    runs_.push_back({n_before, head.epoch});
    head.epoch = (std::uint64_t{runs_.size() - 1} << kRunCountBits) + 1;
    head.has_runs = true;
  }
  if (runs_.back().epoch == run.epoch) {
    runs_.back().end = run.end;
    return;
  }
  runs_.push_back(run);
  ++head.epoch;
}

void StagingLog::lay_over(const Slab& wanted, std::span<std::byte> values) const {
  for_each_touching(wanted, 0, [&](const Slab& from, const std::byte* staged) {
    Overlay overlay(from, wanted);
    if (overlay.match()) overlay.copy(staged, values.data(), element_bytes_);
  });
}

void StagingLog::for_each_touching(const Slab& wanted, std::size_t first_entry,
                                   const SlabVisit& visit) const {
  if (first_entry >= heads_.size()) return;
  const std::size_t rank = wanted.rank();
  if (heads_.size() > index_.n_boxes() + kMostScanned) {
    index_.extend(
        heads_.size() - kStillOpen, rank,
        [&](std::size_t e, std::span<std::uint64_t> box) { bounding_words(heads_[e], box); });
    count_overhead();
  }
  const Box around = wanted.bounding_box();
  std::vector<std::uint64_t> box = around.start;
  box.insert(box.end(), around.count.begin(), around.count.end());
  std::vector<std::uint64_t> other(2 * rank);
  std::vector<std::size_t> touched;
  const auto look = [&](std::size_t e) {
    bounding_words(heads_[e], other);
    if (e >= first_entry && boxes_touch(box, other)) touched.push_back(e);
    return true;
  };
  index_.visit(box, look);
  std::ranges::sort(touched);
  for (std::size_t e = std::max(index_.n_boxes(), first_entry); e < heads_.size(); ++e) look(e);
  for (const std::size_t e : touched) {
    if (heads_[e].scattered) {
      visit_scattered(e, wanted, visit);
    } else {
      visit(slab(e), heads_[e].values);
    }
  }
}

void StagingLog::visit_scattered(std::size_t entry, const Slab& wanted,
                                 const SlabVisit& visit) const {
  const std::size_t rank = heads_[entry].rank;
  const auto lengths = words(heads_[entry]).subspan(2 * rank, rank);
  const Box around = wanted.bounding_box();
  std::uint64_t begin = 0;
  std::uint64_t last = 0;
  for (std::size_t d = 0; d < rank; ++d) {
    begin = (d == 0 ? 0 : begin * lengths[d]) + around.start[d];
    last = (d == 0 ? 0 : last * lengths[d]) + around.start[d] + around.count[d] - 1;
  }
  for_each_scattered_box(
      entry, begin, last,
      [&](const Slab& from, std::uint64_t, const std::byte* staged) { visit(from, staged); });
}

// --- Sorting of a full block.

/// Entries of the last block, while they are sorted. Indices are relative to `first`.
struct StagingLog::Batch {
  static constexpr std::size_t no_next = SIZE_MAX;

  std::size_t first = 0;  ///< Index of the block's first entry in the log.
  std::size_t rank = 0;
  std::vector<std::size_t> alive;  ///< Entries that no later one covers.
  std::vector<bool> lone;          ///< Per entry: dense, and touches no other live entry.
  /// First entry of each chain of adjacent lone entries.
  std::vector<std::size_t> chains;
  /// Per entry: the next one in its chain.
  std::vector<std::size_t> next;
};

/// Merge adjacent entries, drop covered ones, and copy the rest to a block of exact size, if that
/// leaves at most half of the entries. Without memory for it, the block stays as it is.
void StagingLog::sort_last_block() {
  const std::size_t n_before = heads_.size();
  std::optional<StagingMemory::Block> block;
  try {
    sort_last_block_into(block);
  } catch (const std::bad_alloc&) {
    if (heads_.size() != n_before) throw;
    if (block) memory_->release(*block);
  }
}

void StagingLog::sort_last_block_into(std::optional<StagingMemory::Block>& block) {
  Batch batch;
  batch.first = first_in_block_;
  const std::size_t n = heads_.size() - first_in_block_;
  if (n < kLeastToSort || n_unsorted_ > 0) {
    if (n_unsorted_ > 0) --n_unsorted_;
    return;
  }
  batch.rank = heads_.back().rank;
  drop_covered(batch);
  find_lone(batch);
  chain_neighbours(batch);
  const auto n_lone = static_cast<std::size_t>(std::ranges::count(batch.lone, true));
  const std::size_t n_left = batch.alive.size() - n_lone + batch.chains.size();
  if (n_left > n / 2) {
    n_in_vain_ = std::min(n_in_vain_ + 1, kMostInVain);
    n_unsorted_ = 1U << n_in_vain_;
    return;
  }
  n_in_vain_ = 0;
  std::uint64_t n_bytes = 0;
  for (const std::size_t i : batch.alive) {
    const Head& head = heads_[batch.first + i];
    n_bytes += run_bytes(head) + n_elements(head) * element_bytes_;
  }
  const Result<StagingMemory::Block> allocated = memory_->allocate(n_bytes);
  if (!allocated.ok()) return;
  block = *allocated;
  rewrite_last_block(batch, *block);
}

void StagingLog::drop_covered(Batch& batch) const {
  const std::size_t n = heads_.size() - batch.first;
  BoxIndex index;
  index.extend(n, batch.rank, [&](std::size_t i, std::span<std::uint64_t> box) {
    bounding_words(heads_[batch.first + i], box);
  });
  std::vector<std::uint64_t> box(2 * batch.rank);
  for (std::size_t i = 0; i < n; ++i) {
    bounding_words(heads_[batch.first + i], box);
    bool covered = false;
    std::size_t n_looks = 0;
    index.visit(box, [&](std::size_t other) {
      const Head& later = heads_[batch.first + other];
      covered = other > i && later.dense() && box_holds(words(later), box);
      return !covered && ++n_looks < kMostLooks;
    });
    if (!covered) batch.alive.push_back(i);
  }
}

void StagingLog::find_lone(Batch& batch) const {
  BoxIndex index;
  index.extend(batch.alive.size(), batch.rank, [&](std::size_t i, std::span<std::uint64_t> box) {
    bounding_words(heads_[batch.first + batch.alive[i]], box);
  });
  batch.lone.assign(heads_.size() - batch.first, false);
  std::vector<std::uint64_t> box(2 * batch.rank);
  std::vector<std::uint64_t> there(2 * batch.rank);
  for (const std::size_t i : batch.alive) {
    const Head& head = heads_[batch.first + i];
    if (!head.dense()) continue;
    bounding_words(head, box);
    bool lone = true;
    std::size_t n_looks = 0;
    index.visit(box, [&](std::size_t other) {
      if (batch.alive[other] == i) return true;
      bounding_words(heads_[batch.first + batch.alive[other]], there);
      lone = !boxes_touch(box, there) && ++n_looks < kMostLooks;
      return lone;
    });
    batch.lone[i] = lone;
  }
}

/// Chain adjacent lone entries, along the last dimension first: elements become rows, rows planes.
/// Chains touch no other entry of the block, so they may take any position in it.
void StagingLog::chain_neighbours(Batch& batch) const {
  struct Chain {
    std::vector<std::uint64_t> box;
    std::size_t first = 0;
    std::size_t last = 0;
  };
  std::vector<Chain> chains;
  for (const std::size_t i : batch.alive) {
    if (!batch.lone[i]) continue;
    const std::span<const std::uint64_t> box = words(heads_[batch.first + i]);
    chains.push_back({{box.begin(), box.end()}, i, i});
  }
  batch.next.assign(batch.lone.size(), Batch::no_next);
  const std::size_t rank = batch.rank;
  for (std::size_t d = rank; d-- > 0;) {
    // Sort by everything except the position along d, then by that position: neighbours along d
    // become adjacent.
    std::ranges::sort(chains, [&](const Chain& a, const Chain& b) {
      for (std::size_t w = 0; w < 2 * rank; ++w) {
        if (w % rank != d && a.box[w] != b.box[w]) return a.box[w] < b.box[w];
      }
      return a.box[d] < b.box[d];
    });
    std::vector<Chain> joined;
    for (Chain& chain : chains) {
      if (!joined.empty() && joint(joined.back().box, chain.box, rank) == d) {
        joined.back().box[rank + d] += chain.box[rank + d];
        batch.next[std::exchange(joined.back().last, chain.last)] = chain.first;
      } else {
        joined.push_back(std::move(chain));
      }
    }
    chains = std::move(joined);
  }
  for (const Chain& chain : chains) batch.chains.push_back(chain.first);
}

void StagingLog::rewrite_last_block(const Batch& batch, const StagingMemory::Block& block) {
  const std::vector<Head> heads(heads_.begin() + static_cast<std::ptrdiff_t>(batch.first),
                                heads_.end());
  const std::size_t first_word = heads.front().first_word();
  const std::vector<std::uint64_t> words(words_.begin() + static_cast<std::ptrdiff_t>(first_word),
                                         words_.end());
  std::size_t first_run = runs_.size();
  for (const Head& head : heads) {
    if (head.has_runs) first_run = std::min(first_run, range_of(head).first);
  }
  const std::vector<StagedRun> runs(runs_.begin() + static_cast<std::ptrdiff_t>(first_run),
                                    runs_.end());
  struct EntryBytes {
    std::uint64_t n_run_bytes = 0;
    std::uint64_t n_value_bytes = 0;
  };
  std::vector<EntryBytes> extents;
  extents.reserve(heads.size());
  for (const Head& head : heads) {
    extents.push_back({run_bytes(head), n_elements(head) * element_bytes_});
  }
  heads_.resize(batch.first);
  words_.resize(first_word);
  runs_.resize(first_run);
  index_.forget_from(batch.first);
  std::byte* to = block.data;
  const auto add = [&](std::size_t i) {
    Head head = heads[i];
    const auto [n_run_bytes, n_value_bytes] = extents[i];
    std::memcpy(to, head.values - n_run_bytes, n_run_bytes + n_value_bytes);
    head.values = to + n_run_bytes;
    to += n_run_bytes + n_value_bytes;
    head.set_first_word(words_.size());
    const auto from =
        words.begin() + static_cast<std::ptrdiff_t>(heads[i].first_word() - first_word);
    words_.insert(words_.end(), from, from + static_cast<std::ptrdiff_t>(head.n_words()));
    if (head.has_runs) {
      const RunRange range = range_of(head);
      head.epoch = (std::uint64_t{runs_.size()} << kRunCountBits) + range.n;
      const auto run = runs.begin() + static_cast<std::ptrdiff_t>(range.first - first_run);
      runs_.insert(runs_.end(), run, run + static_cast<std::ptrdiff_t>(range.n));
    }
    heads_.push_back(head);
    while (join_last()) {
    }
  };
  for (std::size_t i : batch.chains) {
    for (; i != Batch::no_next; i = batch.next[i]) add(i);
  }
  for (const std::size_t i : batch.alive) {
    if (!batch.lone[i]) add(i);
  }
  value_bytes_ -= blocks_.back().used_bytes;
  memory_->release(blocks_.back());
  blocks_.back() = block;
  blocks_.back().used_bytes = static_cast<std::uint64_t>(to - block.data);
  value_bytes_ += blocks_.back().used_bytes;
}

}  // namespace tailrace
