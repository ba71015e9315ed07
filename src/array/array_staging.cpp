// Staged values and their merging.

#include "array/array_staging.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/file_limit.hpp"
#include "core/options.hpp"

namespace tailrace {
namespace {

/// Blocks grow from the first to the last of these, so that many small variables cost little.
constexpr std::uint64_t kFirstBlockBytes = 16U << 10;
constexpr std::uint64_t kLargestBlockBytes = 4U << 20;
constexpr std::uint64_t kPageBytes = 64U << 10;  // a multiple of every page size in use

/// Whether box b, put right behind box a in memory, makes one row-major box with it; along which
/// dimension.
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

/// Lay the elements that two strided slabs share from one's dense array into the other's.
class Overlay {
 public:
  Overlay(const Slab& from, const Slab& to) : from_(from), to_(to) {}

  /// @returns whether there are any.
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
  struct Run {  ///< Positions in the two dense arrays, side by side.
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
    // Walk the slab with the wider steps.
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
  block.data = static_cast<std::byte*>(std::malloc(std::max<std::uint64_t>(n_bytes, 1)));
  if (block.data == nullptr) return spill(n_bytes);
  block.capacity_bytes = n_bytes;
  heap_bytes_ += n_bytes;
  return block;
}

/// The space is taken from the file system before it is mapped: a full disk is an error here, not a
/// signal later.
Result<StagingMemory::Block> StagingMemory::spill(std::uint64_t n_bytes) {
  if (spill_file_ < 0) {
    const char* temporary = std::getenv("TMPDIR");
    std::string name = !spill_folder_.empty() ? spill_folder_
                       : temporary != nullptr ? temporary
                                              : "/tmp";
    name += "/tailrace-staging-XXXXXX";
    spill_file_ = ::mkostemp(name.data(), O_CLOEXEC);
    if (spill_file_ < 0) return status_from_errno(errno, "staging file \"" + name + "\"");
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
    return status_from_errno(refused, "staging " + bytes_text(n_bytes) + " beyond the memory cap");
  }
  void* mapped =
      ::mmap(nullptr, block.capacity_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, spill_file_, start);
  if (mapped == MAP_FAILED) return status_from_errno(errno, "mapping the staging file");
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
    // Chunks that are held back may keep some of it for ever: give this one's space back now, where
    // the file system can.
    static_cast<void>(::fallocate(spill_file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  static_cast<off_t>(block.spill_offset),
                                  static_cast<off_t>(block.capacity_bytes)));
    return;
  }
  // All of it is free again, and so is the disk.
  spill_end_ = 0;
  if (::ftruncate(spill_file_, 0) != 0) {
    ::close(spill_file_);
    spill_file_ = -1;
  }
}

// --- the log

void StagingLog::swap(StagingLog& other) noexcept {
  std::swap(memory_, other.memory_);
  std::swap(element_bytes_, other.element_bytes_);
  std::swap(heads_, other.heads_);
  std::swap(words_, other.words_);
  std::swap(blocks_, other.blocks_);
  std::swap(value_bytes_, other.value_bytes_);
  std::swap(counted_overhead_bytes_, other.counted_overhead_bytes_);
}

void StagingLog::clear() {
  if (memory_ == nullptr) return;
  for (const StagingMemory::Block& block : blocks_) memory_->release(block);
  memory_->add_overhead(-static_cast<std::int64_t>(counted_overhead_bytes_));
  counted_overhead_bytes_ = value_bytes_ = 0;
  std::vector<Head>().swap(heads_);
  std::vector<std::uint64_t>().swap(words_);
  blocks_.clear();
}

std::span<std::uint64_t> StagingLog::words(const Head& head) {
  return std::span(words_).subspan(head.first_word,
                                   (head.strided ? std::size_t{3} : 2) * head.rank);
}

Slab StagingLog::slab(std::size_t entry) const {
  const Head& head = heads_[entry];
  const auto first = words_.begin() + static_cast<std::ptrdiff_t>(head.first_word);
  const std::ptrdiff_t rank = head.rank;
  Slab slab{Shape(first, first + rank), Shape(first + rank, first + 2 * rank), {}};
  if (head.strided) slab.stride.assign(first + 2 * rank, first + 3 * rank);
  return slab;
}

/// Memory behind what was staged last, so that the two can be joined; else in a block of its own.
Result<std::byte*> StagingLog::room_for(std::uint64_t n_bytes) {
  if (!blocks_.empty() && blocks_.back().capacity_bytes - blocks_.back().used_bytes >= n_bytes) {
    StagingMemory::Block& block = blocks_.back();
    return block.data + std::exchange(block.used_bytes, block.used_bytes + n_bytes);
  }
  const std::uint64_t grown = blocks_.empty()
                                  ? kFirstBlockBytes
                                  : std::min(2 * blocks_.back().capacity_bytes, kLargestBlockBytes);
  TAILRACE_TAKE(StagingMemory::Block block, memory_->allocate(std::max(n_bytes, grown)));
  block.used_bytes = n_bytes;
  blocks_.push_back(block);
  return block.data;
}

Status StagingLog::put(const Slab& slab, std::span<const std::byte> values, std::uint64_t epoch) {
  if (overwrite_last(slab, values, epoch)) return Status();
  TAILRACE_TAKE(auto* room, room_for(values.size()));
  std::memcpy(room, values.data(), values.size());
  value_bytes_ += values.size();
  const auto rank = static_cast<std::uint16_t>(slab.rank());
  Head head{room, values.size(), epoch, rank, !slab.dense(), words_.size()};
  words_.insert(words_.end(), slab.start.begin(), slab.start.end());
  words_.insert(words_.end(), slab.count.begin(), slab.count.end());
  if (head.strided) words_.insert(words_.end(), slab.stride.begin(), slab.stride.end());
  heads_.push_back(head);
  while (join_last()) {
  }
  const std::uint64_t overhead =
      heads_.capacity() * sizeof(Head) + words_.capacity() * sizeof(std::uint64_t);
  memory_->add_overhead(static_cast<std::int64_t>(overhead - counted_overhead_bytes_));
  counted_overhead_bytes_ = overhead;
  return Status();
}

/// The same slab once more, right after itself: its values are replaced.
bool StagingLog::overwrite_last(const Slab& slab, std::span<const std::byte> values,
                                std::uint64_t epoch) {
  if (heads_.empty()) return false;
  Head& last = heads_.back();
  if (last.n_bytes != values.size() || last.strided == slab.dense()) return false;
  const std::span<const std::uint64_t> there = words(last);
  const auto same = [&](const Shape& shape, std::size_t part) {
    return std::equal(shape.begin(), shape.end(), there.begin() + std::ptrdiff_t(part * last.rank));
  };
  if (!same(slab.start, 0) || !same(slab.count, 1)) return false;
  if (last.strided && !same(slab.stride, 2)) return false;
  std::memcpy(last.values, values.data(), values.size());
  last.epoch = epoch;
  return true;
}

std::vector<Box> StagingLog::boxes() const {
  std::vector<Box> boxes;
  std::vector<std::uint64_t> last;
  std::vector<std::uint64_t> next;
  for (std::size_t e = 0; e < heads_.size(); ++e) {
    Box box = slab(e).bounding_box();
    next = box.start;
    next.insert(next.end(), box.count.begin(), box.count.end());
    const std::optional<std::size_t> d =
        boxes.empty() ? std::nullopt : joint(last, next, box.rank());
    if (d) {
      boxes.back().count[*d] += box.count[*d];
      last[box.rank() + *d] += box.count[*d];
    } else {
      boxes.push_back(std::move(box));
      last = next;
    }
  }
  return boxes;
}

/// Make one entry of the last two, if they are one box in one run of memory.
bool StagingLog::join_last() {
  if (heads_.size() < 2) return false;
  Head& before = heads_[heads_.size() - 2];
  const Head last = heads_.back();
  if (before.epoch != last.epoch || before.strided || last.strided) return false;
  if (before.values + before.n_bytes != last.values) return false;
  const std::span<std::uint64_t> to = words(before);
  const std::optional<std::size_t> d = joint(to, words(last), last.rank);
  if (!d) return false;
  to[last.rank + *d] += words(last)[last.rank + *d];
  before.n_bytes += last.n_bytes;
  words_.resize(last.first_word);
  heads_.pop_back();
  return true;
}

void StagingLog::lay_over(const Slab& wanted, std::span<std::byte> values) const {
  for (std::size_t e = 0; e < heads_.size(); ++e) {
    const Slab from = slab(e);
    Overlay overlay(from, wanted);
    if (overlay.match()) overlay.copy(heads_[e].values, values.data(), element_bytes_);
  }
}

}  // namespace tailrace
