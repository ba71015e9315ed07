// Batches, addresses, and what dedup remembers.

#include "concat/concat_write.hpp"

#include <algorithm>
#include <chrono>
#include <span>

namespace tailrace {
namespace {

/// dedup looks at chunks of at most so many encoded bytes, and remembers so many in all.
constexpr std::uint64_t shared_bytes_max = 4U << 10;
constexpr std::uint64_t remembered_bytes_max = 32U << 20;

/// How often a waiting main thread looks after the tail.
constexpr std::chrono::microseconds tail_service_interval{50};

std::string_view text_of(const Buffer& buffer) {
  return {reinterpret_cast<const char*>(buffer.data()), buffer.n_bytes()};
}

}  // namespace

ConcatWriteLane::ConcatWriteLane(Storage& storage, Tail& tail, const Settings& settings)
    : storage_(storage), tail_(tail), settings_(settings), thread_([this] { run(); }) {}

ConcatWriteLane::~ConcatWriteLane() {
  {
    const std::scoped_lock lock(mutex_);
    ending_ = true;
  }
  wake_.notify_all();
  thread_.join();
}

void ConcatWriteLane::push(Chunk chunk) {
  std::unique_lock lock(mutex_);
  const bool held = settings_.dense && !chunk.address;
  if (!held) {
    moved_.wait(
        lock, [&] { return waiting_bytes_ <= 2 * settings_.write_buffer_bytes || !status_.ok(); });
  }
  if (!status_.ok()) return;
  // What is held goes away with the round only: nobody may wait for that here.
  (held ? held_bytes_ : waiting_bytes_) += chunk.bytes.n_bytes();
  peak_bytes_ = std::max(peak_bytes_, waiting_bytes_ + held_bytes_);
  if (held) {
    held_.push_back(std::move(chunk));
    return;
  }
  waiting_.push_back(std::move(chunk));
  lock.unlock();
  wake_.notify_one();
}

void ConcatWriteLane::run() {
  std::unique_lock lock(mutex_);
  while (true) {
    wake_.wait(lock, [this] { return ending_ || !waiting_.empty(); });
    if (waiting_.empty()) return;
    std::vector<Chunk> batch;
    std::uint64_t n_bytes = 0;
    while (!waiting_.empty() && (batch.empty() || n_bytes + waiting_.front().bytes.n_bytes() <=
                                                      settings_.write_buffer_bytes)) {
      n_bytes += waiting_.front().bytes.n_bytes();
      batch.push_back(std::move(waiting_.front()));
      waiting_.pop_front();
    }
    writing_ = true;
    const bool drop = !status_.ok();
    lock.unlock();
    const Status status = drop ? Status() : write(batch);
    batch.clear();
    lock.lock();
    writing_ = false;
    waiting_bytes_ -= n_bytes;
    if (status_.ok() && !status.ok()) status_ = status;
    moved_.notify_all();
  }
}

Status ConcatWriteLane::write(std::vector<Chunk>& batch) {
  const auto start = std::chrono::steady_clock::now();
  std::vector<Chunk> run;
  std::vector<Twin> twins;
  Status status;
  for (Chunk& chunk : batch) {
    if (chunk.address) {
      status = storage_.write_at(*chunk.address, std::as_const(chunk.bytes).bytes());
      if (!status.ok()) break;
    } else if (!has_twin(chunk, twins)) {
      run.push_back(std::move(chunk));
    }
  }
  if (status.ok() && !run.empty()) status = write_run(run, std::nullopt);
  if (status.ok()) enter_twins(twins);
  busy_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return status;
}

void ConcatWriteLane::enter_twins(const std::vector<Twin>& twins) {
  for (const Twin& twin : twins) {
    written_.push_back({twin.place, stored_.at(twin.bytes), twin.bytes.size(), twin.filter_mask});
  }
  n_shared_ += twins.size();
}

bool ConcatWriteLane::has_twin(const Chunk& chunk, std::vector<Twin>& twins) {
  const std::uint64_t n_bytes = chunk.bytes.n_bytes();
  if (!settings_.dedup || n_bytes > shared_bytes_max) return false;
  std::string bytes(text_of(chunk.bytes));
  if (stored_.count(bytes) > 0) {
    twins.push_back({chunk.place, chunk.filter_mask, std::move(bytes)});
    return true;
  }
  if (stored_bytes_ + n_bytes > remembered_bytes_max) return false;
  stored_bytes_ += n_bytes;
  stored_.emplace(std::move(bytes), 0);  // write_run() will know the address.
  return false;
}

Status ConcatWriteLane::write_run(std::vector<Chunk>& batch, std::optional<std::uint64_t> at) {
  std::vector<std::span<const std::byte>> pieces;
  pieces.reserve(batch.size());
  std::uint64_t n_bytes = 0;
  for (const Chunk& chunk : batch) {
    pieces.push_back(chunk.bytes.bytes());
    n_bytes += chunk.bytes.n_bytes();
  }
  std::uint64_t address = at ? *at : tail_.claim(n_bytes);
  TAILRACE_TRY(storage_.write_pieces_at(address, pieces));
  for (const Chunk& chunk : batch) {
    written_.push_back({chunk.place, address, chunk.bytes.n_bytes(), chunk.filter_mask});
    if (settings_.dedup) {
      const auto known = stored_.find(std::string(text_of(chunk.bytes)));
      if (known != stored_.end()) known->second = address;
    }
    address += chunk.bytes.n_bytes();
  }
  return Status();
}

void ConcatWriteLane::wait_until_idle() {
  std::unique_lock lock(mutex_);
  const auto idle = [this] { return waiting_.empty() && !writing_; };
  // Between nodes the lane's claims make progress only while this thread serves the tail.
  while (tail_.needs_service() && !moved_.wait_for(lock, tail_service_interval, idle)) {
    lock.unlock();
    tail_.service();
    lock.lock();
  }
  moved_.wait(lock, idle);
}

Status ConcatWriteLane::finish_round(Comm& comm) {
  wait_until_idle();
  if (!settings_.dense) return status_;
  // The lane rests: nothing else touches what it holds.
  std::sort(held_.begin(), held_.end(),
            [](const Chunk& a, const Chunk& b) { return a.place < b.place; });
  std::vector<Twin> twins;
  std::erase_if(held_, [&](const Chunk& chunk) { return has_twin(chunk, twins); });
  std::uint64_t n_bytes = 0;
  for (const Chunk& chunk : held_) n_bytes += chunk.bytes.n_bytes();
  const std::unique_ptr<PendingSum> sum = comm.start_sum({n_bytes});
  while (!sum->complete()) tail_.service();
  Bytes base(sizeof(std::uint64_t));
  if (comm.is_root()) {
    const std::uint64_t address = tail_.claim(std::max<std::uint64_t>(sum->total()[0], 1));
    std::copy_n(reinterpret_cast<const std::byte*>(&address), sizeof address, base.data());
  }
  comm.broadcast(base, 0);
  std::uint64_t address = 0;
  std::copy_n(base.data(), sizeof address, reinterpret_cast<std::byte*>(&address));
  address += sum->before()[0];
  const auto start = std::chrono::steady_clock::now();
  std::vector<Chunk> batch;
  std::uint64_t batch_bytes = 0;
  for (std::size_t i = 0; i < held_.size() && status_.ok(); ++i) {
    batch_bytes += held_[i].bytes.n_bytes();
    batch.push_back(std::move(held_[i]));
    if (i + 1 < held_.size() && batch_bytes < settings_.write_buffer_bytes) continue;
    status_ = write_run(batch, address);
    address += batch_bytes;
    batch_bytes = 0;
    batch.clear();
  }
  if (status_.ok()) enter_twins(twins);
  busy_s_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  held_.clear();
  held_bytes_ = 0;
  return status_;
}

std::vector<WrittenPlace> ConcatWriteLane::take_written() { return std::exchange(written_, {}); }

}  // namespace tailrace
