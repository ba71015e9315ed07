// The loop of the writing thread.

#include "exec/io_lane.hpp"

namespace tailrace {

IoLane::IoLane(Storage& storage, Tail& tail, std::span<const FieldPlan> plans, MemoryBudget& budget,
               const Settings& settings, const LaneClock& clock, Trace* trace,
               std::function<void()> activity)
    : storage_(storage),
      tail_(tail),
      plans_(plans),
      budget_(budget),
      settings_(settings),
      clock_(clock),
      trace_(trace),
      activity_(std::move(activity)),
      thread_([this] { run(); }) {}

IoLane::~IoLane() { finish(); }

void IoLane::push(EncodedChunk chunk) {
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(chunk));
  }
  wake_.notify_one();
}

void IoLane::finish() {
  {
    const std::scoped_lock lock(mutex_);
    finishing_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

bool IoLane::idle() const {
  const std::scoped_lock lock(mutex_);
  return waiting_.empty() && !writing_;
}

Status IoLane::status() const {
  const std::scoped_lock lock(mutex_);
  return status_;
}

void IoLane::run() {
  while (true) {
    std::vector<EncodedChunk> batch = take_batch();
    if (batch.empty()) return;
    Status written = status();
    if (written.ok() && !tail_.failure_raised()) written = write_batch(batch);
    for (EncodedChunk& chunk : batch) {
      chunk.bytes = Buffer();
      budget_.give_back(chunk.budget_bytes);
    }
    {
      const std::scoped_lock lock(mutex_);
      writing_ = false;
      if (status_.ok() && !written.ok()) {
        status_ = written;
        tail_.raise_failure();
      }
    }
    activity_();
  }
}

/// Wait for chunks and take those that can be one write; none once the lane is finished and empty.
std::vector<EncodedChunk> IoLane::take_batch() {
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return !waiting_.empty() || finishing_; });
  std::vector<EncodedChunk> batch;
  std::uint64_t n_bytes = 0;
  while (!waiting_.empty()) {
    const EncodedChunk& next = waiting_.front();
    if (!batch.empty()) {
      const WrittenChunk& last = batch.back().chunk;
      const bool joins = next.placed == batch.back().placed &&
                         (!next.placed || last.address + last.encoded_bytes == next.chunk.address);
      if (!joins || n_bytes + next.data().size() > settings_.write_buffer_bytes) break;
    }
    n_bytes += next.data().size();
    batch.push_back(std::move(waiting_.front()));
    waiting_.pop_front();
  }
  writing_ = !batch.empty();
  return batch;
}

/// Claim one run at the tail for the whole batch and let the layout pack the chunks into it.
void IoLane::place_batch(std::vector<EncodedChunk>& batch) {
  const Layout& layout = *plans_[batch.front().chunk.field].layout;
  std::vector<ChunkSizes> sizes;
  std::uint64_t n_bytes = 0;
  for (const EncodedChunk& chunk : batch) {
    sizes.push_back({chunk.chunk.chunk_index, 0, 0, chunk.chunk.encoded_bytes});
    n_bytes += layout.capacity(sizes.back());
  }
  const std::uint64_t slack = settings_.alignment_bytes - 1;
  std::uint64_t base = tail_.claim(n_bytes + slack);
  base = (base + slack) / settings_.alignment_bytes * settings_.alignment_bytes;
  const std::vector<Placement> placements = layout.place(sizes, base);
  for (std::size_t i = 0; i < batch.size(); ++i) batch[i].chunk.address = placements[i].address;
}

Status IoLane::write_batch(std::vector<EncodedChunk>& batch) {
  if (!batch.front().placed) place_batch(batch);
  std::vector<std::span<const std::byte>> pieces;
  std::uint64_t n_bytes = 0;
  for (const EncodedChunk& chunk : batch) {
    pieces.push_back(chunk.data());
    n_bytes += chunk.data().size();
  }
  const double start_s = clock_.now_s();
  TAILRACE_TRY(storage_.write_pieces_at(batch.front().chunk.address, pieces));
  const double end_s = clock_.now_s();
  busy_.add(start_s, end_s);
  ++n_writes_;
  for (const EncodedChunk& chunk : batch) written_.push_back(chunk.chunk);
  if (trace_ != nullptr) {
    const bool single = batch.size() == 1;
    const FieldPlan& plan = plans_[batch.front().chunk.field];
    trace_->add({TraceEvent::Kind::write, settings_.rank, io_lane_number,
                 single ? static_cast<std::int32_t>(plan.field_index) : -1,
                 single ? static_cast<std::int64_t>(batch.front().chunk.chunk_index) : -1, start_s,
                 end_s, n_bytes, batch.front().chunk.address});
  }
  return Status();
}

}  // namespace tailrace
