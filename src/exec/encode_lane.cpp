// The loop of the encoding threads.

#include "exec/encode_lane.hpp"

#include <algorithm>
#include <chrono>
#include <exception>
#include <optional>
#include <utility>

#include "exec/encode_chunk.hpp"

namespace tailrace {
namespace {

constexpr auto kMemoryNap = std::chrono::microseconds(200);

/// Gather this rank's values into the chunk's buffer, pad the edges, encode.
Result<ChunkOutcome> gather_and_encode(const FieldPlan& plan, StagedChunk& chunk) {
  if (!chunk.values.allocated()) {
    Result<Buffer> values = make_chunk_buffer(plan, *chunk.job);
    if (!values.ok()) return values.status();
    chunk.values = std::move(*values);
  }
  if (plan.patches != nullptr) {
    const std::uint64_t chunk_index = chunk.job->chunk_index;
    const auto completed = plan.patches->complete(chunk_index, chunk.values);
    if (!completed.ok()) return completed.status();
    if (completed->fresh) pad_edges(plan, *chunk.job, chunk.values);
    if (completed->store_raw) return store_raw(plan, std::move(chunk.values));
    return encode_chunk(plan, chunk_index, std::move(chunk.values));
  }
  if (!chunk.gathered) gather_local_parts(plan, *chunk.job, chunk.values);
  pad_edges(plan, *chunk.job, chunk.values);
  return encode_chunk(plan, chunk.job->chunk_index, std::move(chunk.values));
}

}  // namespace

EncodeLane::EncodeLane(std::uint64_t n_threads, Tail& tail, std::span<const FieldPlan> plans,
                       MemoryBudget& budget, std::int32_t rank, const LaneClock& clock,
                       Trace* trace, std::function<void(EncodedChunk)> encoded,
                       std::function<void()> activity)
    : tail_(tail),
      plans_(plans),
      budget_(budget),
      rank_(rank),
      clock_(clock),
      trace_(trace),
      encoded_(std::move(encoded)),
      activity_(std::move(activity)),
      tallies_(plans.size()) {
  for (std::uint64_t i = 0; i < n_threads; ++i) {
    threads_.emplace_back([this, i] { run(static_cast<std::int32_t>(i) + 1); });
  }
}

EncodeLane::~EncodeLane() { finish(); }

void EncodeLane::push(StagedChunk chunk) {
  {
    const std::scoped_lock lock(mutex_);
    waiting_.push_back(std::move(chunk));
  }
  wake_.notify_one();
}

std::size_t EncodeLane::n_waiting() const {
  const std::scoped_lock lock(mutex_);
  return waiting_.size();
}

bool EncodeLane::idle() const {
  const std::scoped_lock lock(mutex_);
  return waiting_.empty() && n_running_ == 0;
}

Status EncodeLane::status() const {
  const std::scoped_lock lock(mutex_);
  return status_;
}

/// Chunks that were held back with nothing but their values take what encoding needs now. It comes
/// free by itself: whatever else holds memory is being encoded or written, or dropped.
void EncodeLane::take_extra(StagedChunk& chunk) {
  while (!budget_.try_take(chunk.extra_bytes)) {
    if (tail_.failure_raised()) return;  // it is dropped, as all that memory waits for
    std::this_thread::sleep_for(kMemoryNap);
  }
  chunk.budget_bytes += std::exchange(chunk.extra_bytes, 0);
}

bool EncodeLane::encode_here(const LaneOutlook& outlook) {
  StagedChunk chunk;
  {
    const std::scoped_lock lock(mutex_);
    std::vector<double> lengths_s;
    for (const StagedChunk& waiting : waiting_) lengths_s.push_back(waiting.encode_s);
    const std::optional<std::size_t> picked = pick_operation(lengths_s, outlook);
    if (!picked) return false;
    const auto place = waiting_.begin() + static_cast<std::ptrdiff_t>(*picked);
    if (!budget_.try_take(place->extra_bytes)) return false;
    chunk = std::move(*place);
    waiting_.erase(place);
    ++n_running_;
  }
  chunk.budget_bytes += std::exchange(chunk.extra_bytes, 0);
  encode(std::move(chunk), 0);
  {
    const std::scoped_lock lock(mutex_);
    --n_running_;
  }
  activity_();
  return true;
}

void EncodeLane::finish() {
  {
    const std::scoped_lock lock(mutex_);
    finishing_ = true;
  }
  wake_.notify_all();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

void EncodeLane::run(std::int32_t lane_number) {
  while (true) {
    StagedChunk chunk;
    {
      std::unique_lock lock(mutex_);
      wake_.wait(lock, [this] { return !waiting_.empty() || finishing_; });
      if (waiting_.empty()) return;
      chunk = std::move(waiting_.front());
      waiting_.pop_front();
      ++n_running_;
    }
    take_extra(chunk);
    encode(std::move(chunk), lane_number);
    {
      const std::scoped_lock lock(mutex_);
      --n_running_;
    }
    activity_();
  }
}

/// Whatever is thrown below must not end the job, nor leave the lane with a chunk that never ends.
void EncodeLane::encode(StagedChunk chunk, std::int32_t lane_number) {
  if (tail_.failure_raised()) {
    budget_.give_back(chunk.budget_bytes);
    return;
  }
  Status done;
  try {
    done = encode_and_hand_on(chunk, lane_number);
  } catch (const std::exception& thrown) {
    const FieldPlan& plan = plans_[chunk.job->field];
    done = Status(Code::codec_failed, "field \"" + plan.path + "\": codec " +
                                          std::string(plan.codec->name()) +
                                          " threw: " + thrown.what());
  }
  if (done.ok()) return;
  budget_.give_back(chunk.budget_bytes);
  const std::scoped_lock lock(mutex_);
  if (status_.ok()) status_ = done;
  tail_.raise_failure();
}

Status EncodeLane::encode_and_hand_on(StagedChunk& chunk, std::int32_t lane_number) {
  const FieldPlan& plan = plans_[chunk.job->field];
  const double start_s = clock_.now_s();
  const auto borrowed =
      chunk.gathered ? std::span<const std::byte>() : borrow_values(plan, *chunk.job);
  if (!borrowed.empty()) {
    EncodedChunk written_from_place;
    written_from_place.borrowed = borrowed;
    hand_on(chunk, std::move(written_from_place), ChunkOutcome(), 0);
    return Status();
  }
  Result<ChunkOutcome> outcome = gather_and_encode(plan, chunk);
  if (!outcome.ok()) return outcome.status();
  const double end_s = clock_.now_s();
  record(chunk, lane_number, start_s, end_s, outcome->verify_s);

  EncodedChunk encoded;
  encoded.bytes = std::move(outcome->encoded.buffer);
  hand_on(chunk, std::move(encoded), *outcome, end_s - start_s - outcome->verify_s);
  return Status();
}

/// Account for a finished chunk, shrink its budget to what it still holds, pass it on.
void EncodeLane::hand_on(StagedChunk& chunk, EncodedChunk encoded, const ChunkOutcome& outcome,
                         double encode_s) {
  const FieldPlan& plan = plans_[chunk.job->field];
  const std::uint64_t n_bytes = encoded.data().size();
  encoded.chunk = {chunk.job->field, chunk.job->chunk_index, 0, n_bytes,
                   outcome.encoded.filter_mask};
  encoded.job = chunk.job;
  encoded.budget_bytes = std::min<std::uint64_t>(encoded.bytes.n_bytes(), chunk.budget_bytes);
  budget_.give_back(std::exchange(chunk.budget_bytes, 0) - encoded.budget_bytes);
  {
    const std::scoped_lock lock(mutex_);
    FieldTally& tally = tallies_[chunk.job->field];
    ++tally.n_chunks;
    tally.n_raw_chunks += outcome.stored_raw ? 1 : 0;
    tally.encoded_bytes += n_bytes;
    tally.encode_s += encode_s;
    tally.verify_s += outcome.verify_s;
    tally.max_error = std::max(tally.max_error, outcome.max_error);
  }
  tail_.add_done(plan.grid.clipped_box(chunk.job->chunk_index).n_elements() * plan.element_bytes());
  encoded_(std::move(encoded));
}

void EncodeLane::record(const StagedChunk& chunk, std::int32_t lane_number, double start_s,
                        double end_s, double verify_s) {
  busy_.add(start_s, end_s);
  if (trace_ == nullptr) return;
  const FieldPlan& plan = plans_[chunk.job->field];
  const auto field = static_cast<std::int32_t>(plan.field_index);
  const auto index = static_cast<std::int64_t>(chunk.job->chunk_index);
  const std::uint64_t n_bytes = plan.chunk_bytes();
  trace_->add({TraceEvent::Kind::encode, rank_, lane_number, field, index, start_s,
               end_s - verify_s, n_bytes, 0});
  if (verify_s > 0) {
    trace_->add({TraceEvent::Kind::verify, rank_, lane_number, field, index, end_s - verify_s,
                 end_s, n_bytes, 0});
  }
}

}  // namespace tailrace
