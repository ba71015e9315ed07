// Loop of the writing thread: batches, addresses, writes for other ranks.

#include "exec/io_lane.hpp"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <new>

#include "exec/thread_team.hpp"

namespace tailrace {
namespace {

// Poll interval for gifts of other processes
constexpr auto kSharedNap = std::chrono::milliseconds(1);
// Poll interval for an obstacle that ends unmarked
constexpr auto kRegardNap = std::chrono::microseconds(500);

/// Reserve capacity for `n` values. @returns false if memory is short.
template <class T>
bool try_reserve(std::vector<T>& values, std::size_t n) {
  if (n <= values.capacity()) return true;
  try {
    values.reserve(std::max(n, 2 * values.capacity()));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

}  // namespace

IoLane::IoLane(Storage& storage, Tail& tail, Placer* placer, std::span<const FieldPlan> plans,
               MemoryBudget& budget, const Settings& settings, ThreadTeam& threads,
               const LaneClock& clock, Trace* trace, std::function<void()> activity)
    : storage_(storage),
      tail_(tail),
      placer_(placer),
      plans_(plans),
      budget_(budget),
      settings_(settings),
      clock_(clock),
      trace_(trace),
      activity_(std::move(activity)),
      threads_(threads),
      has_thread_(threads.start_helpers() > 0) {
  batch_.chunks.reserve(1);
  next_.chunks.reserve(1);
  const std::scoped_lock lock(mutex_);
  if (expects_gifts()) wake();
}

/// If an exception ends the step, no thread serves what the lane's thread waits for.
IoLane::~IoLane() {
  if (!idle()) tail_.raise_failure();
  finish();
}

/// Wake the thread if it rests. Requires mutex_.
void IoLane::wake() {
  if (at_work_ || !has_thread_) return;
  at_work_ = threads_.post([this] { run(); });  // One helper exists: it rests.
}

void IoLane::push(EncodedChunk chunk) {
  Status queued = local_part([&] { return queue(chunk); });
  if (queued.ok()) {
    wake_.notify_one();
    if (!has_thread_ && !leaves_waiting_) write_waiting();
    return;
  }
  budget_.give_back(chunk.budget_bytes);
  {
    const std::scoped_lock lock(mutex_);
    fail(std::move(queued));
  }
  activity_();
}

/// Queue a chunk. Without memory the caller keeps the chunk, and the step must fail.
Status IoLane::queue(EncodedChunk& chunk) {
  const std::scoped_lock lock(mutex_);
  auto place = waiting_.end();
  while (place != waiting_.begin() && std::prev(place)->write_position > chunk.write_position) {
    --place;
  }
  const Status queued = local_part([&] {
    wake();  // First: without memory for the call the chunk is not queued.
    waiting_.insert(place, std::move(chunk));
    return Status();
  });
  return queued.ok() ? queued : no_memory_for(chunk);
}

/// Record the first failure. Requires mutex_.
void IoLane::fail(Status failure) {
  if (!status_.ok()) return;
  status_ = std::move(failure);
  tail_.raise_failure();
}

Status IoLane::no_memory_for(const EncodedChunk& chunk) const {
  const Status failure(Code::out_of_memory, "no memory left");
  if (chunk.job == nullptr) return failure.within("\"" + storage_.path() + "\"");
  return failure.within("field \"" + plans_[chunk.chunk.field].path + "\"");
}

void IoLane::hurry() {
  {
    const std::scoped_lock lock(mutex_);
    hurried_ = true;
  }
  leaves_waiting_ = false;
  wake_.notify_one();
  if (!has_thread_) write_waiting();
}

void IoLane::leave_waiting(bool leave) { leaves_waiting_ = leave && tail_.claims_travel(); }

void IoLane::finish() {
  std::unique_lock lock(mutex_);
  finishing_ = true;
  wake_.notify_one();
  rested_.wait(lock, [this] { return !at_work_; });
}

bool IoLane::idle() const {
  const std::scoped_lock lock(mutex_);
  return waiting_.empty() && next_.chunks.empty() && !writing_;
}

Status IoLane::status() const {
  const std::scoped_lock lock(mutex_);
  return status_;
}

void IoLane::run() {
  while (take_batch()) write_or_drop();
}

/// Write the waiting chunks on the calling thread, if no other thread is writing.
void IoLane::write_waiting() {
  while (true) {
    {
      const std::scoped_lock lock(mutex_);
      if (writing_ || waiting_.empty()) return;
      take_from(batch_, 0, unlimited_outlook());
      writing_ = true;
    }
    write_or_drop();
  }
}

void IoLane::write_or_drop() {
  Status written = local_part([this] { return write_taken(); });
  for (EncodedChunk& chunk : batch_.chunks) {
    if (chunk.is_values) budget_.keep(std::move(chunk.bytes));
    chunk.bytes = Buffer();
    budget_.give_back(chunk.budget_bytes);
  }
  if (written.ok() && settings_.sync_behind && unsynced_ &&
      written_.size() + n_given_ == settings_.n_chunks) {
    written = local_part([this] { return sync(); });
  }
  {
    const std::scoped_lock lock(mutex_);
    writing_ = false;
    if (!written.ok()) fail(std::move(written));
  }
  activity_();
}

/// Write the batch, unless the step has failed.
Status IoLane::write_taken() {
  if (tail_.failure_raised() || !status().ok()) return Status();
  bool returned = false;
  Status written = local_part([&] {
    Status done = write_batch();
    returned = true;
    return done;
  });
  const bool nameless = !returned && written.code() == Code::out_of_memory;
  return nameless ? no_memory_for(batch_.chunks.front()) : written;
}

/// Take chunks that can be one write, as soon as the application leaves time for it. @returns false
/// if nothing waits; then the thread rests.
bool IoLane::take_batch() {
  std::unique_lock lock(mutex_);
  const auto something = [this] {
    return !waiting_.empty() || !next_.chunks.empty() || finishing_;
  };
  LaneOutlook outlook;
  std::optional<std::size_t> first;
  if (writes_for_node()) write_for_others(lock);  // alternate, since other ranks wait for it
  while (true) {
    while (expects_gifts() && !something()) {
      if (!write_for_others(lock)) wake_.wait_for(lock, kSharedNap, something);
    }
    if (!next_.chunks.empty()) {
      std::swap(batch_, next_);
      next_.chunks.clear();
      writing_ = true;
      return true;
    }
    if (waiting_.empty()) {
      at_work_ = false;
      rested_.notify_all();
      return false;
    }
    first = pick(outlook);
    if (first) break;
    wake_.wait_for(lock, kRegardNap);
  }
  take_from(batch_, *first, outlook);
  writing_ = true;
  return true;
}

/// Take the chunk at this position and the following ones that can be written with it. Requires
/// mutex_.
void IoLane::take_from(Batch& batch, std::size_t first, const LaneOutlook& outlook) {
  batch.chunks.clear();
  batch.claim.reset();
  std::uint64_t n_bytes = 0;
  auto next = waiting_.begin() + static_cast<std::ptrdiff_t>(first);
  while (next != waiting_.end()) {
    const std::uint64_t with_next = n_bytes + next->data().size();
    if (!batch.chunks.empty() &&
        (!joins(batch.chunks.back(), *next, n_bytes) ||
         outlook.now_s + settings_.regard.seconds(with_next) > outlook.free_until_s)) {
      break;
    }
    // Capacity for one always exists.
    if (!try_reserve(batch.chunks, batch.chunks.size() + 1)) break;
    n_bytes = with_next;
    batch.chunks.push_back(std::move(*next));
    next = waiting_.erase(next);
  }
}

/// Start the next write's claim during this one: between nodes a claim takes some milliseconds.
void IoLane::claim_ahead() {
  // A write that is passed on waits for the node's writer, which may itself need a ticket.
  if (!has_thread_ || !tail_.claims_travel() || passes_on()) return;
  {
    const std::scoped_lock lock(mutex_);
    if (waiting_.empty() || regards_application()) return;
    if (waiting_.front().address_from != AddressFrom::tail) return;
    take_from(next_, 0, unlimited_outlook());
  }
  next_.claim = start_claim(bytes_of(next_));
}

/// Write one gift of another rank, if any waits and the application leaves time for it. Releases
/// the lock meanwhile.
bool IoLane::write_for_others(std::unique_lock<std::mutex>& lock) {
  if (!settings_.shared->waiting()) return false;
  std::uint64_t n_bytes_max = UINT64_MAX;
  if (regards_application()) {
    const LaneOutlook outlook = settings_.regard.outlook();
    if (outlook.blocked) return false;
    const double free_s = outlook.free_until_s - outlook.now_s - settings_.regard.write_latency_s;
    const double n_bytes = free_s / settings_.regard.write_s_per_byte;
    if (!(n_bytes >= 1)) return false;
    if (n_bytes < 1e18) n_bytes_max = static_cast<std::uint64_t>(n_bytes);
  }
  const auto task = settings_.shared->take(n_bytes_max);
  if (!task) return false;
  writing_ = true;
  lock.unlock();
  write_task(*task);
  lock.lock();
  writing_ = false;
  lock.unlock();
  activity_();  // for a caller that waits until the lane is idle
  lock.lock();
  return true;
}

void IoLane::write_task(const SharedWrites::Task& task) {
  if (tail_.failure_raised()) {
    settings_.shared->complete(task, SharedWrites::Outcome::dropped);
    return;
  }
  const Status written = local_part([&] { return write_foreign(task.address, task.bytes); });
  settings_.shared->complete(
      task, written.ok() ? SharedWrites::Outcome::written : SharedWrites::Outcome::failed, written);
}

void IoLane::write_given_without_thread() {
  if (has_thread_ || !writes_for_node()) return;
  if (const auto task = settings_.shared->take()) write_task(*task);
}

Status IoLane::write_foreign(std::uint64_t address, std::span<const std::byte> bytes) {
  const double start_s = clock_.now_s();
  const Status written = storage_.write_at(address, bytes);
  const double end_s = clock_.now_s();
  busy_.add(start_s, end_s);
  foreign_s_ += end_s - start_s;
  ++n_writes_;
  unsynced_ = true;
  if (trace_ != nullptr) {
    trace_->add({TraceEvent::Kind::write, settings_.rank, kIoLaneNumber, -1, -1, start_s, end_s,
                 bytes.size(), address});
  }
  return written;
}

/// True if the lane yields to the application now. False if a caller waits for the step. Also false
/// if the step has failed, since dropping chunks takes no time. Requires mutex_.
bool IoLane::regards_application() const {
  return settings_.regard.outlook && !hurried_ && !finishing_ && !tail_.failure_raised();
}

/// Index of the waiting chunk to write first; std::nullopt while the application uses the lane.
std::optional<std::size_t> IoLane::pick(LaneOutlook& outlook) {
  outlook = unlimited_outlook();
  if (!regards_application() || !try_reserve(lengths_s_, waiting_.size())) return 0;
  outlook = settings_.regard.outlook();
  lengths_s_.clear();
  for (const EncodedChunk& chunk : waiting_) {
    lengths_s_.push_back(settings_.regard.seconds(chunk.data().size()));
  }
  return pick_operation(lengths_s_, outlook);
}

/// True if `next` can be written together with a batch of `batch_bytes` that ends with `last`.
bool IoLane::joins(const EncodedChunk& last, const EncodedChunk& next,
                   std::uint64_t batch_bytes) const {
  const std::uint64_t n_bytes = batch_bytes + next.data().size();
  if (next.address_from != last.address_from || n_bytes > settings_.write_buffer_bytes) {
    return false;
  }
  switch (next.address_from) {
    case AddressFrom::arena: return placer_->arena_holds(n_bytes);
    case AddressFrom::place:
      return last.chunk.address + last.chunk.encoded_bytes == next.chunk.address;
    case AddressFrom::tail: {
      const std::uint64_t room = tail_.room();
      return n_bytes <= room || batch_bytes > room;
    }
  }
  return false;
}

/// Return the address of a batch in the arena. A chunk that does not fit is alone in its batch
/// (joins()). It goes to room that another overflow has left, or else opens a run for itself and
/// all remaining chunks.
std::uint64_t IoLane::arena_address(std::uint64_t n_bytes) {
  for (const EncodedChunk& chunk : batch_.chunks) {
    placer_->count_arena_chunk(*chunk.job, chunk.chunk.encoded_bytes);
  }
  if (!placer_->arena_holds(n_bytes)) {
    const std::size_t field = batch_.chunks.front().chunk.field;
    const std::optional<std::uint64_t> freed = placer_->place_overflow(field, n_bytes);
    if (freed) return *freed;
    const std::uint64_t run_bytes = n_bytes + placer_->arena_bytes_to_come();
    placer_->move_arena({claim(run_bytes), run_bytes}, field, n_bytes);
  }
  return placer_->take_from_arena(n_bytes);
}

std::uint64_t IoLane::bytes_of(const Batch& batch) {
  std::uint64_t n_bytes = 0;
  for (const EncodedChunk& chunk : batch.chunks) n_bytes += chunk.chunk.encoded_bytes;
  return n_bytes;
}

/// Assign addresses in one run for the complete batch, at the tail or in the arena, without gaps.
void IoLane::place_batch() {
  std::uint64_t address = 0;
  if (batch_.chunks.front().address_from == AddressFrom::arena) {
    address = arena_address(bytes_of(batch_));
  } else {
    if (!batch_.claim) batch_.claim = start_claim(bytes_of(batch_));
    address = finish_claim(*batch_.claim);
  }
  for (EncodedChunk& chunk : batch_.chunks) {
    chunk.chunk.address = address;
    address += chunk.chunk.encoded_bytes;
  }
}

std::uint64_t IoLane::claim(std::uint64_t n_bytes) {
  Tail::Claim claim = start_claim(n_bytes);
  return finish_claim(claim);
}

std::optional<std::uint64_t> IoLane::claim_at_once(std::uint64_t n_bytes) {
  const std::uint64_t alignment = settings_.alignment_bytes;
  const auto base = tail_.claim_at_once(n_bytes + alignment - 1);
  if (!base) return std::nullopt;
  return (*base + alignment - 1) / alignment * alignment;
}

/// Claim the bytes and those that aligning the address may need.
Tail::Claim IoLane::start_claim(std::uint64_t n_bytes) {
  return tail_.start_claim(n_bytes + settings_.alignment_bytes - 1);
}

std::uint64_t IoLane::finish_claim(Tail::Claim& claim) {
  const double start_s = clock_.now_s();
  const std::uint64_t base = tail_.finish_claim(claim);
  claiming_.add(start_s, clock_.now_s());
  const std::uint64_t alignment = settings_.alignment_bytes;
  return (base + alignment - 1) / alignment * alignment;
}

Status IoLane::write_batch() {
  if (batch_.chunks.front().address_from != AddressFrom::place) place_batch();
  if (tail_.failure_raised()) return Status();  // place_batch() may not have got an address
  claim_ahead();
  std::vector<std::span<const std::byte>> pieces;
  std::uint64_t n_bytes = 0;
  for (const EncodedChunk& chunk : batch_.chunks) {
    pieces.push_back(chunk.data());
    n_bytes += chunk.data().size();
  }
  if (passes_on()) return pass_on(pieces);
  const double start_s = clock_.now_s();
  TAILRACE_TRY(storage_.write_pieces_at(batch_.chunks.front().chunk.address, pieces));
  const double end_s = clock_.now_s();
  busy_.add(start_s, end_s);
  ++n_writes_;
  unsynced_ = true;
  for (const EncodedChunk& chunk : batch_.chunks) written_.push_back(chunk.chunk);
  if (trace_ != nullptr) {
    const bool single = batch_.chunks.size() == 1;
    const FieldPlan& plan = plans_[batch_.chunks.front().chunk.field];
    trace_->add({TraceEvent::Kind::write, settings_.rank, kIoLaneNumber,
                 single ? static_cast<std::int32_t>(plan.field_index) : -1,
                 single ? static_cast<std::int64_t>(batch_.chunks.front().chunk.chunk_index) : -1,
                 start_s, end_s, n_bytes, batch_.chunks.front().chunk.address});
  }
  return Status();
}

/// False without a thread: the pushing thread may be the main thread, for which other ranks may
/// wait.
bool IoLane::passes_on() const {
  return settings_.node_writer >= 0 && !writes_for_node() && has_thread_;
}

bool IoLane::expects_gifts() const {
  return settings_.shared != nullptr && (settings_.node_writer < 0 || writes_for_node());
}

bool IoLane::writes_for_node() const {
  return settings_.node_writer >= 0 && settings_.shared->rank_on_node() == settings_.node_writer;
}

/// Let the node's writer do the write. Invariant 1: it has written when the chunks are listed.
Status IoLane::pass_on(std::span<const std::span<const std::byte>> pieces) {
  const SharedWrites::Receipt receipt = settings_.shared->write_by(
      settings_.node_writer, batch_.chunks.front().chunk.address, pieces,
      [this](std::uint64_t address, std::span<const std::byte> bytes) {
        return write_foreign(address, bytes);
      },
      [this] { return tail_.failure_raised(); });
  if (receipt.outcome == SharedWrites::Outcome::failed) return receipt.status;
  if (receipt.outcome == SharedWrites::Outcome::dropped) return Status();  // The step has failed.
  for (const EncodedChunk& chunk : batch_.chunks) written_.push_back(chunk.chunk);
  if (receipt.writer == settings_.node_writer) n_passed_on_ += batch_.chunks.size();
  return Status();
}

/// Sync the written step on this thread, where no rank waits for it.
Status IoLane::sync() {
  const double start_s = clock_.now_s();
  TAILRACE_TRY(storage_.sync());
  const double end_s = clock_.now_s();
  sync_s_ += end_s - start_s;
  unsynced_ = false;
  if (trace_ != nullptr) {
    trace_->add(
        {TraceEvent::Kind::sync, settings_.rank, kIoLaneNumber, -1, -1, start_s, end_s, 0, 0});
  }
  return Status();
}

}  // namespace tailrace
