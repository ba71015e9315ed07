// Messages in the window: states of a slot, and the rank that may access it in each.
//
//            try_give                take, take_back              settle
//   free ---------------> posted -----------------------> taken ---------> written, failed, dropped
//    ^                                                                          |
//    +------------------------------- collect ----------------------------------+
//
// Invariants (tests/unit/shared_writes_test.cpp cites the numbers):
//  1. A slot and the bytes it names lie in the donor's segment. Only the donor writes to them while
//     the slot is free or its task is completed; only the rank that took it while it is taken; no
//     rank while it is posted. So a change of state needs no lock: a release store, and for posted
//     -> taken, which donor and recipient may both want, a compare-and-swap that one of them wins.
//  2. A gift is written by one rank, once: the rank that takes it.
//  3. Bytes in the window return to the free room only when their slot is free again.
//  4. A chunk counts as written when collect() returns it, never before.
//  5. finish() returns only when three conditions hold. All ranks of the node have closed the step
//     or are gone; all gifts to this rank are completed; all of its own gifts are collected. Every
//     wait in it ends: a posted gift is taken by its recipient or taken back; a taken one is
//     completed by a thread that only waits for storage.
//  6. No rank waits for a rank that is gone, and that rank's segment stays mapped in the others.
//
// A rank gives away only a few chunks a step, so take() scans all slots of all donors. A counter
// per recipient makes a scan without result cheap.

#include "exec/shared_writes.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <iterator>
#include <new>
#include <thread>

namespace tailrace {
namespace {

constexpr std::uint64_t kCacheLineBytes = 64;
constexpr std::uint64_t page_bytes = 4096;
constexpr std::chrono::microseconds kNapFirst{20};
constexpr std::chrono::microseconds kNapLongest{500};  // same as MpiComm's waits

enum class State : std::uint8_t { free, posted, taken, written, failed, dropped };

/// State of a slot, and everything that a reader must know before it owns the slot. They change in
/// one atomic step, so that a reused slot cannot be mistaken for its earlier use.
struct Word {
  State state = State::free;
  std::uint16_t recipient = 0;
  std::uint64_t sequence = 0;  ///< Number of the gift at its donor, 40 bits: the oldest goes first.

  std::uint64_t packed() const {
    return sequence << 24 | std::uint64_t{recipient} << 8 | static_cast<std::uint64_t>(state);
  }
  static Word of(std::uint64_t packed) {
    return {static_cast<State>(packed & 0xFF), static_cast<std::uint16_t>(packed >> 8),
            packed >> 24};
  }
  bool completed() const {
    return state == State::written || state == State::failed || state == State::dropped;
  }
};

constexpr std::uint64_t aligned(std::uint64_t n_bytes) {
  return (n_bytes + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;
}

}  // namespace

/// One message. Lives in the window, so it has only plain data and lock-free atomics.
struct alignas(kCacheLineBytes) SharedWrites::Slot {
  std::atomic<std::uint64_t> word;     ///< Packed Word.
  std::atomic<std::uint64_t> n_bytes;  ///< Valid if `word` is the same before and after reading it.
  std::uint64_t address;               ///< Address in the file.
  std::uint64_t at;                    ///< Offset in the donor's room.
  std::int32_t writer;                 ///< Rank that took it.
  std::int32_t code;                   ///< Error code of a failed write.
  std::array<char, 216> text;          ///< Text of a failed write; truncated, ends in 0.
};

/// Header of every rank's segment.
struct SharedWrites::Segment {
  alignas(kCacheLineBytes) std::atomic<std::int64_t> n_for_me;  ///< Gifts posted to this rank.
  alignas(kCacheLineBytes) std::atomic<std::uint64_t> closed_step;
  std::atomic<std::uint32_t> gone;
  std::array<Slot, n_slots> slots;

  static_assert(std::atomic<std::uint32_t>::is_always_lock_free &&
                std::atomic<std::uint64_t>::is_always_lock_free);
};

std::uint64_t SharedWrites::segment_bytes(std::uint64_t encoded_bytes) {
  return aligned(sizeof(Segment)) + aligned(encoded_bytes);
}

Result<std::unique_ptr<SharedWrites>> SharedWrites::create(Comm& comm,
                                                           std::uint64_t encoded_bytes) {
  Result<std::unique_ptr<NodeWindow>> window =
      comm.create_node_window(segment_bytes(encoded_bytes));
  if (!window.ok()) return window.status();
  return std::make_unique<SharedWrites>(std::move(*window));
}

SharedWrites::SharedWrites(std::unique_ptr<NodeWindow> window)
    : window_(std::move(window)),
      rank_(window_->rank_on_node()),
      n_ranks_(window_->n_ranks_on_node()) {
  TAILRACE_CHECK(window_->segment(rank_).size() >= segment_bytes(0));
  new (window_->segment(rank_).data()) Segment{};
  if (const std::uint64_t n_bytes = room_of(rank_).size(); n_bytes > 0) gaps_[0] = n_bytes;
}

SharedWrites::~SharedWrites() = default;

SharedWrites::Segment& SharedWrites::segment_of(int rank) const {
  return *std::launder(reinterpret_cast<Segment*>(window_->segment(rank).data()));
}

std::span<std::byte> SharedWrites::room_of(int rank) const {
  return window_->segment(rank).subspan(aligned(sizeof(Segment)));
}

void SharedWrites::start_step(std::uint64_t step) {
  const std::scoped_lock lock(mutex_);
  TAILRACE_CHECK(step > step_ && n_uncollected_ == 0);
  step_ = step;
}

// --- the donor's room: first fit, neighbours merged

std::optional<std::uint64_t> SharedWrites::take_room(std::uint64_t n_bytes) {
  for (const auto& [at, length] : gaps_) {
    if (length < n_bytes) continue;
    const std::uint64_t found = at;
    const std::uint64_t rest = length - n_bytes;
    gaps_.erase(found);
    if (rest > 0) gaps_[found + n_bytes] = rest;
    return found;
  }
  return std::nullopt;
}

void SharedWrites::give_room_back(std::uint64_t at, std::uint64_t n_bytes) {
  const auto gap = gaps_.emplace(at, n_bytes).first;
  if (const auto next = std::next(gap); next != gaps_.end() && at + n_bytes == next->first) {
    gap->second += next->second;
    gaps_.erase(next);
  }
  if (gap == gaps_.begin()) return;
  const auto before = std::prev(gap);
  if (before->first + before->second != at) return;
  before->second += gap->second;
  gaps_.erase(gap);
}

// --- donor

/// Reserve a slot and room for a gift. The slot's word stays free, so no other rank reads it.
std::optional<std::size_t> SharedWrites::reserve(const WrittenChunk& chunk, std::uint64_t n_bytes) {
  const std::scoped_lock lock(mutex_);
  Segment& own = segment_of(rank_);
  TAILRACE_CHECK(own.closed_step.load() < step_);
  const auto slot = std::find(in_use_.begin(), in_use_.end(), false);
  if (slot == in_use_.end()) return std::nullopt;
  const std::optional<std::uint64_t> at = take_room(aligned(n_bytes));
  if (!at) return std::nullopt;
  *slot = true;
  ++n_uncollected_;
  const auto index = static_cast<std::size_t>(slot - in_use_.begin());
  given_[index] = chunk;
  own.slots[index].at = *at;
  own.slots[index].n_bytes.store(n_bytes, std::memory_order_relaxed);
  return index;
}

// Does not hold the lock while claiming: between nodes a claim may wait for the main thread, which
// may need the lock.
bool SharedWrites::try_give(int recipient, WrittenChunk& chunk, std::span<const std::byte> bytes,
                            const std::function<std::uint64_t()>& claim) {
  TAILRACE_CHECK(recipient >= 0 && recipient < n_ranks_);
  if (recipient == rank_ || bytes.empty() || segment_of(recipient).gone.load() != 0) return false;
  const std::optional<std::size_t> index = reserve(chunk, bytes.size());
  if (!index) return false;
  if (claim) chunk.address = claim();
  Slot& slot = segment_of(rank_).slots[*index];
  std::memcpy(room_of(rank_).data() + slot.at, bytes.data(), bytes.size());
  slot.address = chunk.address;
  post(*index, recipient);
  return true;
}

/// Publish a slot to its recipient, after its address, place and bytes are set.
void SharedWrites::post(std::size_t slot_index, int recipient) {
  Slot& slot = segment_of(rank_).slots[slot_index];
  const std::scoped_lock lock(mutex_);
  given_[slot_index].address = slot.address;
  const Word word{State::posted, static_cast<std::uint16_t>(recipient), sequence_++};
  slot.word.store(word.packed(), std::memory_order_release);
  segment_of(recipient).n_for_me.fetch_add(1);
}

SharedWrites::Receipt SharedWrites::write_by(
    int writer, std::uint64_t address, std::span<const std::span<const std::byte>> pieces,
    const std::function<Status(std::uint64_t, std::span<const std::byte>)>& write,
    const std::function<bool()>& failed) {
  TAILRACE_CHECK(writer >= 0 && writer < n_ranks_ && writer != rank_);
  // Parts are multiples of pages, so that aligned data stays aligned (align=direct).
  std::size_t room_bytes = room_of(rank_).size();
  room_bytes -= room_bytes % (room_bytes < page_bytes ? kCacheLineBytes : page_bytes);
  TAILRACE_CHECK(room_bytes > 0);
  Receipt receipt;
  std::size_t in_piece = 0;
  while (!pieces.empty() && receipt.outcome == Outcome::written) {
    std::uint64_t n_bytes = 0;
    for (const auto piece : pieces) n_bytes += piece.size();
    n_bytes = std::min<std::uint64_t>(n_bytes - in_piece, room_bytes);
    const std::optional<std::size_t> index = reserve({}, n_bytes);
    TAILRACE_CHECK(index.has_value());  // This rank has no other gift pending.
    Slot& slot = segment_of(rank_).slots[*index];
    slot.address = address;
    for (std::uint64_t done_bytes = 0; done_bytes < n_bytes;) {
      const std::span<const std::byte> rest = pieces.front().subspan(in_piece);
      const std::size_t taken = std::min<std::size_t>(rest.size(), n_bytes - done_bytes);
      std::copy_n(rest.begin(), taken, room_of(rank_).subspan(slot.at + done_bytes).begin());
      done_bytes += taken;
      in_piece += taken;
      if (in_piece < pieces.front().size()) continue;
      pieces = pieces.subspan(1);
      in_piece = 0;
    }
    while (!pieces.empty() && pieces.front().empty()) pieces = pieces.subspan(1);
    address += n_bytes;
    post(*index, writer);
    receipt = await_gift(writer, write, failed);
  }
  return receipt;
}

/// Wait for the only pending gift. Takes it back if its recipient may never write it.
SharedWrites::Receipt SharedWrites::await_gift(
    int writer, const std::function<Status(std::uint64_t, std::span<const std::byte>)>& write,
    const std::function<bool()>& failed) {
  std::chrono::microseconds nap = kNapFirst;
  while (true) {
    std::vector<Receipt> receipts = collect();
    if (!receipts.empty()) return std::move(receipts.front());
    const bool drop = failed();
    if (drop || segment_of(writer).gone.load() != 0) {
      if (const std::optional<Task> task = take_back()) {
        const Status done = drop ? Status() : write(task->address, task->bytes);
        const Outcome outcome = done.ok() ? Outcome::written : Outcome::failed;
        complete(*task, drop ? Outcome::dropped : outcome, done);
        continue;
      }
    }
    std::this_thread::sleep_for(nap);
    nap = std::min(2 * nap, kNapLongest);
  }
}

std::vector<SharedWrites::Receipt> SharedWrites::collect() {
  std::vector<Receipt> receipts;
  const std::scoped_lock lock(mutex_);
  for (std::size_t i = 0; i < n_slots && n_uncollected_ > 0; ++i) {
    if (!in_use_[i]) continue;
    Slot& slot = segment_of(rank_).slots[i];
    const State state = Word::of(slot.word.load(std::memory_order_acquire)).state;
    Receipt receipt;
    receipt.chunk = given_[i];
    if (state == State::failed) {
      receipt.outcome = Outcome::failed;
      receipt.status = Status(static_cast<Code>(slot.code), slot.text.data());
    } else if (state == State::dropped) {
      receipt.outcome = Outcome::dropped;
    } else if (state != State::written) {
      continue;
    }
    receipt.writer = slot.writer;
    if (receipt.writer != rank_) {
      const std::string writer = std::to_string(rank_in_comm(receipt.writer));
      receipt.status = receipt.status.within("chunk given to rank " + writer);
    }
    give_room_back(slot.at, aligned(slot.n_bytes.load(std::memory_order_relaxed)));
    --n_uncollected_;
    in_use_[i] = false;
    slot.word.store(Word{}.packed(), std::memory_order_relaxed);
    receipts.push_back(std::move(receipt));
  }
  return receipts;
}

std::size_t SharedWrites::n_uncollected() const {
  const std::scoped_lock lock(mutex_);
  return n_uncollected_;
}

std::optional<SharedWrites::Task> SharedWrites::take_back() {
  return take_from(rank_, UINT64_MAX, std::nullopt);
}

void SharedWrites::close() {
  const std::scoped_lock lock(mutex_);
  segment_of(rank_).closed_step.store(step_, std::memory_order_release);
}

// --- recipient

bool SharedWrites::waiting() const { return segment_of(rank_).n_for_me.load() > 0; }

/// Take the oldest posted gift of a donor, for one recipient or (to take it back) for any.
std::optional<SharedWrites::Task> SharedWrites::take_from(int donor, std::uint64_t n_bytes_max,
                                                          std::optional<int> recipient) {
  Segment& from = segment_of(donor);
  while (true) {
    Slot* oldest = nullptr;
    Word chosen;
    for (Slot& slot : from.slots) {
      const Word word = Word::of(slot.word.load(std::memory_order_acquire));
      if (word.state != State::posted || (recipient && word.recipient != *recipient)) continue;
      if (slot.n_bytes.load(std::memory_order_relaxed) > n_bytes_max) continue;
      if (oldest != nullptr && word.sequence >= chosen.sequence) continue;
      oldest = &slot;
      chosen = word;
    }
    if (oldest == nullptr) return std::nullopt;
    std::uint64_t expected = chosen.packed();
    const Word mine{State::taken, chosen.recipient, chosen.sequence};
    if (!oldest->word.compare_exchange_strong(expected, mine.packed())) continue;
    segment_of(chosen.recipient).n_for_me.fetch_sub(1);
    oldest->writer = rank_;
    const auto index = static_cast<std::size_t>(oldest - from.slots.data());
    const std::uint64_t n_bytes = oldest->n_bytes.load(std::memory_order_relaxed);
    return Task{donor, index, oldest->address, room_of(donor).subspan(oldest->at, n_bytes)};
  }
}

std::optional<SharedWrites::Task> SharedWrites::take(std::uint64_t n_bytes_max) {
  if (!waiting()) return std::nullopt;
  const int first = next_donor_.load(std::memory_order_relaxed);
  for (int i = 0; i < n_ranks_; ++i) {
    const int donor = (first + i) % n_ranks_;
    if (donor == rank_) continue;
    if (std::optional<Task> task = take_from(donor, n_bytes_max, rank_)) {
      next_donor_.store((donor + 1) % n_ranks_, std::memory_order_relaxed);
      return task;
    }
  }
  return std::nullopt;
}

void SharedWrites::complete(const Task& task, Outcome outcome, const Status& status) {
  Slot& slot = segment_of(task.donor).slots[task.slot];
  Word word = Word::of(slot.word.load(std::memory_order_relaxed));
  TAILRACE_CHECK(word.state == State::taken && slot.writer == rank_);
  switch (outcome) {
    case Outcome::written: word.state = State::written; break;
    case Outcome::dropped: word.state = State::dropped; break;
    case Outcome::failed: {
      word.state = State::failed;
      slot.code = static_cast<std::int32_t>(status.code());
      const std::size_t n = std::min(status.message().size(), slot.text.size() - 1);
      std::memcpy(slot.text.data(), status.message().data(), n);
      slot.text[n] = '\0';
      break;
    }
  }
  slot.word.store(word.packed(), std::memory_order_release);
}

// --- the end of a step

/// Once a donor has closed, all of its posts are visible; hence the order of the two loops.
bool SharedWrites::may_leave() const {
  {
    const std::scoped_lock lock(mutex_);
    if (n_uncollected_ > 0) return false;
  }
  for (int rank = 0; rank < n_ranks_; ++rank) {
    const Segment& segment = segment_of(rank);
    const bool closed = segment.closed_step.load(std::memory_order_acquire) >= step_;
    if (!closed && segment.gone.load() == 0) return false;
  }
  for (int donor = 0; donor < n_ranks_; ++donor) {
    if (segment_of(donor).gone.load() != 0) continue;
    for (const Slot& slot : segment_of(donor).slots) {
      const Word word = Word::of(slot.word.load(std::memory_order_acquire));
      if (word.state == State::posted && word.recipient == rank_) return false;
    }
  }
  return true;
}

std::vector<SharedWrites::Receipt> SharedWrites::finish(
    const std::function<Status(std::uint64_t, std::span<const std::byte>)>& write,
    const std::function<bool()>& failed, const std::function<void()>& attend) {
  close();
  std::vector<Receipt> receipts;
  std::chrono::microseconds nap = kNapFirst;
  while (true) {
    for (Receipt& receipt : collect()) receipts.push_back(std::move(receipt));
    if (attend) attend();
    std::optional<Task> task = take();
    if (!task) task = take_back();
    if (task) {
      const bool drop = failed();
      const Status done = drop ? Status() : write(task->address, task->bytes);
      const Outcome outcome = done.ok() ? Outcome::written : Outcome::failed;
      complete(*task, drop ? Outcome::dropped : outcome, done);
      nap = kNapFirst;
      continue;
    }
    if (may_leave()) return receipts;
    std::this_thread::sleep_for(nap);
    nap = std::min(2 * nap, kNapLongest);
  }
}

void SharedWrites::abandon() {
  segment_of(rank_).gone.store(1);
  window_->abandon();
}

}  // namespace tailrace
