// The main thread of a step: staging, serving, rounds, and the end.

#include "exec/executor.hpp"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "core/options.hpp"
#include "exec/encode_chunk.hpp"

namespace tailrace {
namespace {

constexpr auto kTransitInterval = std::chrono::microseconds(20);  // fragments move when polled
constexpr auto kPollInterval = std::chrono::microseconds(100);    // while messages may come
constexpr auto kIdleInterval = std::chrono::milliseconds(50);  // only the progress bar wants more

}  // namespace

Executor::Executor(Comm& comm, Tail& tail, Storage& storage, std::span<const FieldPlan> plans,
                   const Ownership& ownership, const ExecutorSettings& settings,
                   const LaneClock& clock)
    : comm_(comm),
      tail_(tail),
      plans_(plans),
      ownership_(ownership),
      settings_(settings),
      clock_(clock),
      budget_(settings.memory_bytes),
      io_lane_(storage, tail, plans, budget_,
               {settings.write_buffer_bytes, settings.alignment_bytes, comm.rank()}, clock,
               settings.trace, [this] { signal_activity(); }),
      encode_lane_(
          settings.n_threads, tail, plans, budget_, comm.rank(), clock, settings.trace,
          [this](EncodedChunk chunk) { take_encoded(std::move(chunk)); },
          [this] { signal_activity(); }) {
  pieces_ = std::make_unique<PieceExchange>(comm, plans, ownership.owed, [this](ChunkKey key) {
    const auto staged = awaiting_pieces_.find(key);
    encode_lane_.push(std::move(staged->second));
    awaiting_pieces_.erase(staged);
  });
  const bool any_rounds = std::any_of(plans.begin(), plans.end(), [](const FieldPlan& plan) {
    return plan.layout->base_from() == BaseFrom::prefix;
  });
  if (any_rounds) round_ = Round::collecting;
}

Status Executor::run(ExecutorReport& report) {
  const double start_s = clock_.now_s();
  if (Status enough = check_memory(); !enough.ok()) fail(enough);
  double next_progress_s = start_s;
  while (true) {
    const std::uint64_t seen = n_active();  // before looking, so that no signal is slept through
    pieces_->serve();
    tail_.service();
    if (failed()) cancel_rest();
    while (stage_next()) {
    }
    advance_round();
    if (finished()) break;
    if (settings_.progress && clock_.now_s() >= next_progress_s) {
      settings_.progress();
      next_progress_s = clock_.now_s() + 0.1;
    }
    wait_for_activity(seen);
  }
  encode_lane_.finish();
  io_lane_.finish();
  comm_.finish_posts();
  if (settings_.progress) settings_.progress();

  const auto encode = encode_lane_.busy().merged();
  const auto write = io_lane_.busy().merged();
  report.tallies = encode_lane_.tallies();
  report.written = std::move(io_lane_.written());
  report.read_s = total_s(reading_.merged());
  report.encode_s = total_s(encode);
  report.write_s = total_s(write);
  report.hidden_s = overlap_s(encode, write);
  report.makespan_s = clock_.now_s() - start_s;
  report.n_writes = io_lane_.n_writes();
  report.piece_bytes = pieces_->piece_bytes();
  report.peak_memory_bytes = budget_.peak_bytes();
  if (!own_status_.ok()) return own_status_;
  if (Status encoded = encode_lane_.status(); !encoded.ok()) return encoded;
  return io_lane_.status();
}

/// Refuse a cap under which some chunk could never be encoded, rather than wait for ever.
Status Executor::check_memory() const {
  for (const ChunkJob& job : ownership_.jobs) {
    const std::uint64_t needed = job_memory_bytes(job);
    if (needed <= budget_.cap_bytes()) continue;
    const FieldPlan& plan = plans_[job.field];
    return Status(Code::out_of_memory,
                  "field \"" + plan.path + "\": a chunk of " + bytes_text(plan.chunk_bytes()) +
                      " needs " + bytes_text(needed) + " to be encoded with " +
                      std::string(plan.codec->name()) + ", the memory cap is " +
                      bytes_text(budget_.cap_bytes()) + "; raise memory= or lower chunk=");
  }
  return Status();
}

std::uint64_t Executor::job_memory_bytes(const ChunkJob& job) const {
  const FieldPlan& plan = plans_[job.field];
  const Box held = plan.grid.clipped_box(job.chunk_index);
  const bool pulled =
      !job.local.empty() && plan.puts[job.local.front().put_index].source != nullptr;
  // An edge chunk is pulled into a buffer of its own first, since the source knows no padding.
  const bool twice = pulled && held != plan.values_box(job.chunk_index);
  return encode_memory_bytes(plan) + (twice ? held.n_elements() * plan.element_bytes() : 0);
}

/// Stage one more chunk if there is one, the lane wants one, and memory allows it.
bool Executor::stage_next() {
  if (next_job_ == ownership_.jobs.size()) return false;
  if (encode_lane_.n_waiting() + awaiting_pieces_.size() >= 2 * settings_.n_threads) return false;
  const ChunkJob& job = ownership_.jobs[next_job_];
  const std::uint64_t budget_bytes = job_memory_bytes(job);
  out_of_budget_ = !budget_.try_take(budget_bytes);
  if (out_of_budget_) return false;
  ++next_job_;
  stage(job, budget_bytes);
  return !failed();
}

void Executor::stage(const ChunkJob& job, std::uint64_t budget_bytes) {
  const FieldPlan& plan = plans_[job.field];
  const bool pulled =
      !job.local.empty() && plan.puts[job.local.front().put_index].source != nullptr;
  StagedChunk staged{&job, Buffer(), budget_bytes};
  if (job.remote.empty() && !pulled) {
    encode_lane_.push(std::move(staged));
    return;
  }
  Result<Buffer> values = make_chunk_buffer(plan, job);
  Status prepared = values.status();
  if (prepared.ok() && pulled) prepared = pull(job, *values);
  if (!prepared.ok()) {
    fail(prepared);
    budget_.give_back(budget_bytes);
    pieces_->cancel(job);
    return;
  }
  staged.values = std::move(*values);
  if (job.remote.empty()) {
    encode_lane_.push(std::move(staged));
    return;
  }
  const ChunkKey key{job.field, job.chunk_index};
  const auto entry = awaiting_pieces_.emplace(key, std::move(staged)).first;
  pieces_->request(job, entry->second.values.data());
}

/// Read a pulled chunk's values from its source.
Status Executor::pull(const ChunkJob& job, Buffer& values) {
  const FieldPlan& plan = plans_[job.field];
  const Box held = plan.grid.clipped_box(job.chunk_index);
  const Box full = plan.values_box(job.chunk_index);
  BoxSource& source = *plan.puts[job.local.front().put_index].source;
  const double start_s = clock_.now_s();
  Status read;
  if (held == full) {
    read = source.read(held, values.bytes());
  } else {
    Buffer part(held.n_elements() * plan.element_bytes());
    if (!part.allocated()) return Status(Code::out_of_memory, "no memory to read a chunk");
    read = source.read(held, part.bytes());
    if (read.ok()) copy_box(held, held, part.data(), full, values.data(), plan.element_bytes());
  }
  const double end_s = clock_.now_s();
  reading_.add(start_s, end_s);
  if (settings_.trace != nullptr) {
    settings_.trace->add({TraceEvent::Kind::read, comm_.rank(), 0,
                          static_cast<std::int32_t>(plan.field_index),
                          static_cast<std::int64_t>(job.chunk_index), start_s, end_s,
                          held.n_elements() * plan.element_bytes(), 0});
  }
  return read.within("field \"" + plan.path + "\", reading " + box_text(held));
}

/// From an encode thread: pass the chunk on by what its layout needs.
void Executor::take_encoded(EncodedChunk chunk) {
  const FieldPlan& plan = plans_[chunk.chunk.field];
  switch (plan.layout->base_from()) {
    case BaseFrom::claim: io_lane_.push(std::move(chunk)); return;
    case BaseFrom::shape: {
      const ChunkSizes sizes{chunk.chunk.chunk_index, plan.chunk_bytes(), 0, 0};
      chunk.chunk.address = plan.layout->place(std::span(&sizes, 1), plan.base_address)[0].address;
      chunk.placed = true;
      io_lane_.push(std::move(chunk));
      return;
    }
    case BaseFrom::prefix: {
      const std::scoped_lock lock(mutex_);
      held_.push_back(std::move(chunk));
      return;
    }
  }
}

/// Move a dense layout's round on if it can: the steps of Round in turn, none of which blocks.
void Executor::advance_round() {
  if (round_ == Round::collecting) {
    const bool all_staged = next_job_ == ownership_.jobs.size();
    const bool full = out_of_budget_ && io_lane_.idle();
    if (!(all_staged || full) || !awaiting_pieces_.empty() || !encode_lane_.idle()) return;
    {
      const std::scoped_lock lock(mutex_);
      round_chunks_ = std::move(held_);
      held_.clear();
    }
    std::uint64_t n_bytes = 0;
    for (const EncodedChunk& chunk : round_chunks_) n_bytes += chunk.data().size();
    sum_ = comm_.start_sum({n_bytes, all_staged ? 0U : 1U});
    round_ = Round::adding;
  }
  if (round_ == Round::adding && sum_->complete()) {
    round_before_ = sum_->before()[0];
    round_is_last_ = sum_->total()[1] == 0;
    // One rank takes the round's bytes from the tail; the sum of its address and zeros tells all.
    const std::uint64_t n_bytes = sum_->total()[0];
    sum_ = comm_.start_sum({comm_.is_root() ? tail_.claim(n_bytes) : 0});
    round_ = Round::basing;
  }
  if (round_ == Round::basing && sum_->complete()) {
    place_round(sum_->total()[0] + round_before_);
    round_ = round_is_last_ ? Round::none : Round::collecting;
  }
}

void Executor::place_round(std::uint64_t base) {
  for (EncodedChunk& chunk : round_chunks_) {
    const ChunkSizes sizes{chunk.chunk.chunk_index, 0, 0, chunk.chunk.encoded_bytes};
    const Placement placement =
        plans_[chunk.chunk.field].layout->place(std::span(&sizes, 1), base)[0];
    chunk.chunk.address = placement.address;
    chunk.placed = true;
    base += placement.capacity;
    io_lane_.push(std::move(chunk));
  }
  round_chunks_.clear();
}

/// After a failure: start nothing more, and release the ranks that hold pieces for us.
void Executor::cancel_rest() {
  for (; next_job_ < ownership_.jobs.size(); ++next_job_) {
    pieces_->cancel(ownership_.jobs[next_job_]);
  }
}

bool Executor::finished() const {
  return next_job_ == ownership_.jobs.size() && round_ == Round::none && pieces_->settled() &&
         encode_lane_.idle() && io_lane_.idle();
}

std::uint64_t Executor::n_active() {
  const std::scoped_lock lock(mutex_);
  return n_active_;
}

void Executor::wait_for_activity(std::uint64_t seen) {
  const bool messages_may_come = !pieces_->settled() || round_ == Round::adding ||
                                 round_ == Round::basing || tail_.needs_service();
  std::chrono::microseconds limit = messages_may_come ? kPollInterval : kIdleInterval;
  if (pieces_->in_transit()) limit = kTransitInterval;
  std::unique_lock lock(mutex_);
  activity_.wait_for(lock, limit, [&] { return n_active_ != seen; });
}

void Executor::signal_activity() {
  {
    const std::scoped_lock lock(mutex_);
    ++n_active_;
  }
  activity_.notify_one();
}

void Executor::fail(const Status& failure) {
  if (own_status_.ok()) own_status_ = failure;
  tail_.raise_failure();
}

bool Executor::failed() const { return tail_.failure_raised(); }

}  // namespace tailrace
