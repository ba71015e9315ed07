// Main thread of a step: staging, serving other ranks, rounds, and the end.

#include "exec/executor.hpp"

#include <algorithm>
#include <chrono>
#include <thread>
#include <utility>

#include "core/options.hpp"
#include "exec/thread_team.hpp"

namespace tailrace {
namespace {

/// Amount staged ahead of the encode threads, in addition to two chunks for each. Waking the main
/// thread for every small chunk would take longer than encoding it. Either limit is enough: bytes
/// of values, or of memory. Codecs need half a MiB and more of working memory for a chunk of a few
/// bytes.
constexpr std::uint64_t kStagedAheadBytes = 1U << 20;
constexpr std::uint64_t kStagedAheadMemory = 16U << 20;
constexpr auto kTransitInterval = std::chrono::microseconds(20);  // fragments move when polled
constexpr auto kPollInterval = std::chrono::microseconds(100);    // while messages may come
// Only the progress bar needs a shorter interval.
constexpr auto kIdleInterval = std::chrono::milliseconds(50);

/// Return the source of a chunk's first pulled part; null if all values are in memory. A field's
/// sources are of one kind.
BoxSource* source_of(const FieldPlan& plan, const ChunkJob& job) {
  for (const LocalPart& part : job.local) {
    BoxSource* const source = plan.puts[part.put_index].source;
    if (source != nullptr) return source;
  }
  return nullptr;
}

}  // namespace

Executor::Executor(Comm& comm, Tail& tail, Storage& storage, std::span<const FieldPlan> plans,
                   const Ownership& ownership, const ExecutorSettings& settings, LaneStock& stock,
                   const LaneClock& clock)
    : comm_(comm),
      tail_(tail),
      plans_(plans),
      ownership_(ownership),
      settings_(settings),
      clock_(clock),
      window_bytes_(settings.shared == nullptr ? 0 : settings.shared->own_bytes()),
      budget_(settings.memory_bytes - std::min(settings.memory_bytes, window_bytes_),
              &stock.blocks),
      blocks_(stock.blocks),
      placer_(plans, ownership.jobs, settings.reservations, settings.alignment_bytes),
      io_lane_(storage, tail, &placer_, plans, budget_,
               {settings.write_buffer_bytes, settings.alignment_bytes, comm.rank(), settings.regard,
                settings.shared, settings.node_writer, settings.sync_behind, ownership.jobs.size()},
               stock.writer, clock, settings.trace,
               [this] {
                 if (out_of_budget_ || encodes_here_ || n_encoding_ == 0) signal_activity();
               }),
      encode_lane_(
          stock.encoders, stock.waits, tail, plans, budget_, comm.rank(), clock, settings.trace,
          [this](EncodedChunk chunk) { take_encoded(std::move(chunk)); },
          [this] { chunk_encoded(); }) {
  pieces_ = std::make_unique<PieceExchange>(comm, plans, ownership.owed,
                                            [this](ChunkKey key) { pieces_arrived(key); });
  TAILRACE_CHECK(settings.order.empty() || settings.order.size() == ownership.jobs.size());
  write_positions_.resize(settings.write_order.size());
  for (std::size_t p = 0; p < settings.write_order.size(); ++p) {
    write_positions_[settings.write_order[p]] = p;
  }
  if (std::any_of(plans.begin(), plans.end(),
                  [](const FieldPlan& plan) { return needs_rounds(*plan.layout); }))
    round_ = Round::collecting;
}

/// If an exception ends the step, this thread serves no other rank.
Executor::~Executor() {
  if (!encode_lane_.idle() || !io_lane_.idle()) tail_.raise_failure();
}

Status Executor::run(ExecutorReport& report) {
  start_s_ = clock_.now_s();
  check_start();
  return finish(report);
}

/// One turn of the main thread; nothing here waits.
/// Invariant: an exception fails the step and has no other effect. This rank still sends, answers
/// and receives everything that other ranks wait for. If needed it tries again, once the lanes have
/// dropped their chunks and released memory.
void Executor::serve_and_stage() {
  const Status done = local_part([this] {
    take_turn();
    return Status();
  });
  if (!done.ok()) fail(done);
}

void Executor::take_turn() {
  do {  // Encoders may take chunks as fast as they are staged: serve other ranks in between.
    const Status served = pieces_->serve();
    if (!served.ok()) fail(served);
    tail_.service();
    io_lane_.write_given_without_thread();
    if (failed()) cancel_rest();
  } while (holding_ == Holding::no ? stage_next() : hold_next());
  all_staged_ = next_job_ == ownership_.jobs.size();
  advance_round();
}

void Executor::hand_over(bool keep_puts, const std::function<void()>& before_waiting) {
  start_s_ = clock_.now_s();
  TAILRACE_CHECK(round_ == Round::none);
  holding_ = keep_puts ? Holding::puts : Holding::values;
  check_start();
  for (const ChunkJob& job : ownership_.jobs) {
    const bool patched = plans_[job.field].patches != nullptr;
    const std::uint64_t extra_bytes = job_memory_bytes(job) - (patched ? 0 : values_bytes(job));
    largest_extra_bytes_ = std::max(largest_extra_bytes_, extra_bytes);
  }
  encode_lane_.hold_back();
  while (true) {
    const std::uint64_t seen = n_active();
    serve_and_stage();
    if (next_job_ == ownership_.jobs.size() && unstaged_ == nullptr && pieces_->finished()) break;
    const Status waited = local_part([&] {
      encode_lane_.let_go();  // The wait may be long, or for memory that threads hold.
      before_waiting();
      make_room(seen);
      return Status();
    });
    if (!waited.ok()) fail(waited);
  }
  comm_.finish_posts();
  const Status woken = local_part([this] {
    encode_lane_.let_go();
    return Status();
  });
  if (!woken.ok()) fail(woken);
  tail_.let_go();
}

/// Wait for messages or memory. A rank without encode threads frees memory by encoding here.
void Executor::make_room(std::uint64_t seen) {
  const double start_s = clock_.now_s();
  const bool short_of_memory = out_of_budget_;
  if (!short_of_memory || encode_lane_.n_threads() > 0 || !encode_here(unlimited_outlook())) {
    wait_for_activity(seen);
  }
  if (short_of_memory) short_of_memory_s_ += clock_.now_s() - start_s;
}

bool Executor::encode_here(const LaneOutlook& outlook) {
  const double start_s = clock_.now_s();
  if (!encode_lane_.encode_here(outlook)) return false;
  encoding_here_.add(start_s, clock_.now_s());
  return true;
}

bool Executor::encode_in_idle_time(const LaneOutlook& outlook) {
  io_lane_.leave_waiting(true);
  const bool encoded = encode_here(outlook);
  io_lane_.leave_waiting(false);
  return encoded;
}

Status Executor::finish(ExecutorReport& report) {
  double next_progress_s = clock_.now_s();
  io_lane_.hurry();
  encodes_here_ = encode_lane_.n_threads() == 0;
  Status ended = local_part([&] {
    report.encode_here_s = total_s(encoding_here_.merged());
    return Status();
  });
  if (!ended.ok()) fail(ended);
  while (true) {
    const std::uint64_t seen = n_active();  // read before checking, so that no signal is missed
    serve_and_stage();
    if (finished()) break;
    ended = local_part([&] {
      if (settings_.progress && clock_.now_s() >= next_progress_s) {
        settings_.progress();
        next_progress_s = clock_.now_s() + 0.1;
      }
      if (encode_lane_.n_threads() > 0 || !encode_here(unlimited_outlook())) {
        wait_for_activity(seen);
      }
      return Status();
    });
    if (!ended.ok()) fail(ended);
  }
  encode_lane_.finish();
  io_lane_.finish();
  report.written = std::move(io_lane_.written());
  report.tallies = std::move(encode_lane_.tallies());
  ended = local_part([&] {
    finish_shared(report);
    return failed() ? Status() : serve_while(tail_, [this] { return io_lane_.sync_rest(); });
  });
  if (!ended.ok()) fail(ended);
  comm_.finish_posts();
  blocks_.end_step();
  if (settings_.progress) settings_.progress();
  return local_part([&] { return fill(report); });
}

/// Fill the report from the lanes' counters. @returns this rank's failure.
Status Executor::fill(ExecutorReport& report) {
  const auto encode = encode_lane_.busy().merged();
  const auto write = io_lane_.busy().merged();
  for (const auto& [from_s, to_s] : io_lane_.claiming().merged()) waiting_.add(from_s, to_s);
  report.wait_s = total_s(waiting_.merged());
  for (std::size_t f = 0; f < report.tallies.size(); ++f) {
    report.tallies[f].n_overflow_chunks = placer_.tallies()[f].n_overflow_chunks;
    report.tallies[f].reserved_bytes = placer_.tallies()[f].reserved_bytes;
  }
  report.read_s = total_s(reading_.merged());
  report.encode_s = total_s(encode);
  report.write_s = total_s(write);
  report.hidden_s = overlap_s(encode, write);
  report.makespan_s = clock_.now_s() - start_s_;
  if (holding_ != Holding::no && !write.empty()) report.makespan_s = write.back().second - start_s_;
  report.encode_here_s += total_s(encode_lane_.in_waits().merged());
  report.n_in_waits = encode_lane_.n_in_waits();
  report.short_of_memory_s = short_of_memory_s_;
  report.sync_s = io_lane_.sync_s();
  report.n_writes = io_lane_.n_writes();
  report.n_moved_writes += io_lane_.n_passed_on();
  report.foreign_write_s = io_lane_.foreign_s();
  report.piece_bytes = pieces_->piece_bytes();
  report.peak_memory_bytes = budget_.peak_bytes() + window_bytes_;
  if (!own_status_.ok()) return own_status_;
  if (Status encoded = encode_lane_.status(); !encoded.ok()) return encoded;
  return io_lane_.status();
}

void Executor::check_start() {
  const Status enough = settings_.failure.ok() ? check_memory() : settings_.failure;
  if (!enough.ok()) fail(enough);
}

/// Reject a cap under which some chunk could never be encoded, instead of waiting forever.
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
  const BoxSource* const source = source_of(plan, job);
  // An edge chunk is first pulled into a separate buffer, since the source knows no padding.
  const bool twice =
      source != nullptr && !source->reads_parts() && held != plan.values_box(job.chunk_index);
  return encode_memory_bytes(plan) + (twice ? held.n_elements() * plan.element_bytes() : 0);
}

std::uint64_t Executor::values_bytes(const ChunkJob& job) const {
  const FieldPlan& plan = plans_[job.field];
  return plan.values_box(job.chunk_index).n_elements() * plan.element_bytes();
}

/// Memory that a handed-over chunk takes before it is encoded.
std::uint64_t Executor::held_bytes(const ChunkJob& job) const {
  const bool in_memory = job.remote.empty() && source_of(plans_[job.field], job) == nullptr;
  if (holding_ == Holding::puts && in_memory) return 0;
  // Pieces of other ranks are stored in addition to the values until the chunk is assembled.
  return plans_[job.field].patches != nullptr ? job_memory_bytes(job) : values_bytes(job);
}

/// Take the values of one more chunk, if one is left and memory allows it. Enough memory stays free
/// for every thread to encode a chunk, so that held chunks can always be encoded.
bool Executor::hold_next() {
  if (next_job_ == ownership_.jobs.size()) return false;
  const ChunkJob& job = job_at(next_job_);
  const std::uint64_t needed = job_memory_bytes(job);
  const std::uint64_t held = held_bytes(job);
  const std::uint64_t kept_free = encode_lane_.n_at_once() * largest_extra_bytes_;
  // If the cap is barely large enough: one chunk at a time, as in run().
  const bool alone = encode_lane_.idle() && awaiting_pieces_.empty();
  if (held == 0) {
    out_of_budget_ = false;
  } else if (!take_budget(held, alone ? needed - held : kept_free)) {
    return false;
  }
  ++next_job_;
  stage(job, held);
  return !failed();
}

/// Submit a chunk to the encode lane. Without memory the chunk is dropped and the step fails.
void Executor::encode(StagedChunk chunk) {
  const std::uint64_t budget_bytes = chunk.budget_bytes;
  ++n_encoding_;
  const Status pushed = local_part([&] {
    encode_lane_.push(std::move(chunk));
    return Status();
  });
  if (pushed.ok()) return;
  --n_encoding_;
  budget_.give_back(budget_bytes);
  fail(pushed);
}

void Executor::pieces_arrived(ChunkKey key) {
  const auto entry = awaiting_pieces_.find(key);
  StagedChunk staged = std::move(entry->second);
  awaiting_pieces_.erase(entry);
  amount_awaiting_.remove(staged);
  encode(std::move(staged));
}

/// Called by an encode thread after each chunk. Wakes the main thread only if it has work.
void Executor::chunk_encoded() {
  const bool was_last = --n_encoding_ == 0;
  if (was_last || out_of_budget_ || (!all_staged_ && !enough_staged({}))) signal_activity();
}

/// True if the encode threads have enough queued, including chunks that wait for pieces.
bool Executor::enough_staged(const StagedAmount& to_come) const {
  const StagedAmount waiting = encode_lane_.waiting();
  const std::uint64_t n_wanted = 2 * std::max<std::uint64_t>(encode_lane_.n_threads(), 1);
  return waiting.n_chunks + to_come.n_chunks >= n_wanted &&
         (waiting.values_bytes + to_come.values_bytes >= kStagedAheadBytes ||
          waiting.budget_bytes + to_come.budget_bytes >= kStagedAheadMemory);
}

/// Acquire memory to stage a chunk. Lanes check out_of_budget_ before they leave the main thread
/// asleep. So after setting it, try again: memory may have been released in between.
bool Executor::take_budget(std::uint64_t n_bytes, std::uint64_t keep_free_bytes) {
  out_of_budget_ = !budget_.try_take(n_bytes, keep_free_bytes);
  if (out_of_budget_) out_of_budget_ = !budget_.try_take(n_bytes, keep_free_bytes);
  return !out_of_budget_;
}

/// Stage one more chunk if one is left, the lane needs one, and memory allows it.
bool Executor::stage_next() {
  if (next_job_ == ownership_.jobs.size()) return false;
  if (enough_staged(amount_awaiting_)) return false;
  const ChunkJob& job = job_at(next_job_);
  const std::uint64_t budget_bytes = job_memory_bytes(job);
  if (!take_budget(budget_bytes, 0)) return false;
  ++next_job_;
  stage(job, budget_bytes);
  return !failed();
}

void Executor::stage(const ChunkJob& job, std::uint64_t budget_bytes) {
  const Status staged = local_part([&] { return try_stage(job, budget_bytes); });
  if (staged.ok()) return;
  fail(staged);
  // Its holders are notified before anything else is staged; a holder that was asked still replies.
  unstaged_ = &job;
  const ChunkKey key{job.field, job.chunk_index};
  if (pieces_->awaits(key)) return;  // The chunk is dropped once the replies have arrived.
  budget_.give_back(budget_bytes);
  if (const auto entry = awaiting_pieces_.find(key); entry != awaiting_pieces_.end()) {
    amount_awaiting_.remove(entry->second);
    awaiting_pieces_.erase(entry);
  }
}

/// @returns a failure, or throws, if the chunk was not passed to the lanes. The caller must then
/// release its memory and notify the holders of its pieces.
Status Executor::try_stage(const ChunkJob& job, std::uint64_t budget_bytes) {
  const FieldPlan& plan = plans_[job.field];
  BoxSource* const source = source_of(plan, job);
  const bool pulled = source != nullptr;
  StagedChunk staged;
  staged.job = &job;
  staged.values_bytes = values_bytes(job);
  staged.budget_bytes = budget_bytes;
  staged.extra_bytes = job_memory_bytes(job) - budget_bytes;
  const auto job_index = static_cast<std::size_t>(&job - ownership_.jobs.data());
  if (!settings_.encode_s.empty()) staged.encode_s = settings_.encode_s[job_index];
  if (job.remote.empty() && !pulled && holding_ != Holding::values) {
    encode(std::move(staged));
    return Status();
  }
  Status prepared;
  if (pulled && !source->reads_parts()) {
    Result<std::optional<EncodedBytes>> stored = pull_stored(job);
    prepared = stored.status();
    if (stored.ok() && stored->has_value()) {
      staged.encoded = std::move(**stored);
      encode(std::move(staged));
      return Status();
    }
  }
  Result<Buffer> values =
      prepared.ok() ? make_chunk_buffer(plan, job, &budget_) : Result<Buffer>(prepared);
  prepared = values.status();
  if (prepared.ok() && pulled) prepared = pull(job, *values);
  if (!prepared.ok()) return prepared;
  staged.values = std::move(*values);
  if (holding_ == Holding::values || (pulled && source->reads_parts())) {
    gather_local_parts(plan, job, staged.values);
    staged.gathered = true;
  }
  if (job.remote.empty()) {
    encode(std::move(staged));
    return Status();
  }
  const ChunkKey key{job.field, job.chunk_index};
  const auto entry = awaiting_pieces_.emplace(key, std::move(staged)).first;
  amount_awaiting_.add(entry->second);
  pieces_->request(job, entry->second.values);
  return Status();
}

/// Get a pulled chunk in the encoded form that its source has, if any.
Result<std::optional<EncodedBytes>> Executor::pull_stored(const ChunkJob& job) {
  const FieldPlan& plan = plans_[job.field];
  const Box held = plan.grid.clipped_box(job.chunk_index);
  const double start_s = clock_.now_s();
  Result<std::optional<EncodedBytes>> stored = source_of(plan, job)->stored(held);
  if (stored.ok() && stored->has_value()) reading_.add(start_s, clock_.now_s());
  return stored;
}

/// Read a pulled chunk's values from its source, or its parts from theirs.
Status Executor::pull(const ChunkJob& job, Buffer& values) {
  const FieldPlan& plan = plans_[job.field];
  const Box held = plan.grid.clipped_box(job.chunk_index);
  const Box full = plan.values_box(job.chunk_index);
  BoxSource& source = *source_of(plan, job);
  const double start_s = clock_.now_s();
  const auto read_held = [&](std::span<std::byte> to) {
    if (!source.reads_more(held)) return source.read(held, to);
    return serve_while(tail_, [&] { return source.read(held, to); });
  };
  Status read;
  if (source.reads_parts()) {
    for (const LocalPart& part : job.local) {
      BoxSource* const its = plan.puts[part.put_index].source;
      if (its != nullptr && read.ok()) read = its->read_part(part.box, full, values.data());
    }
  } else if (held == full) {
    read = read_held(values.bytes());
  } else {
    Buffer part(held.n_elements() * plan.element_bytes());
    if (!part.allocated()) {
      return Status(Code::out_of_memory,
                    "field \"" + plan.path + "\": no memory to read " + box_text(held));
    }
    read = read_held(part.bytes());
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
  return read;
}

/// Called by an encode thread: pass the chunk on as its layout requires.
void Executor::take_encoded(EncodedChunk chunk) {
  const FieldPlan& plan = plans_[chunk.chunk.field];
  if (!write_positions_.empty()) {
    chunk.write_position =
        write_positions_[static_cast<std::size_t>(chunk.job - ownership_.jobs.data())];
  }
  std::optional<std::uint64_t> fixed;
  if (plan.patches != nullptr) fixed = plan.patches->fixed_address(chunk.chunk.chunk_index);
  if (plan.beginnings != nullptr) fixed = plan.beginnings->fixed_address(chunk.chunk.chunk_index);
  if (fixed) {
    chunk.address_from = AddressFrom::place;
    chunk.chunk.address = *fixed;
    io_lane_.push(std::move(chunk));
    return;
  }
  if (needs_rounds(*plan.layout)) {
    chunk.held_since_s = clock_.now_s();
    const std::scoped_lock lock(mutex_);
    held_.push_back(std::move(chunk));
    return;
  }
  if (plan.layout->arena_goal() != nullptr) {
    chunk.address_from = AddressFrom::arena;
  } else if (plan.layout->base_from() != BaseFrom::claim) {
    const auto address = placer_.place(*chunk.job, chunk.chunk.encoded_bytes);
    chunk.address_from = address ? AddressFrom::place : AddressFrom::tail;
    chunk.chunk.address = address.value_or(0);
  }
  if (!give_away(chunk)) io_lane_.push(std::move(chunk));
}

/// Let another rank of the node write the chunk, if the plan says so and that rank can.
bool Executor::give_away(EncodedChunk& chunk) {
  if (settings_.writers.empty() || chunk.address_from == AddressFrom::arena) return false;
  const int writer =
      settings_.writers[static_cast<std::size_t>(chunk.job - ownership_.jobs.data())];
  if (writer < 0) return false;
  std::function<std::uint64_t()> claim;
  if (chunk.address_from == AddressFrom::tail && std::this_thread::get_id() == main_thread_) {
    // The application may call this while rank 0 waits for ranks that wait for the application.
    const auto address = io_lane_.claim_at_once(chunk.chunk.encoded_bytes);
    if (!address) return false;
    chunk.chunk.address = *address;
    chunk.address_from = AddressFrom::place;
  } else if (chunk.address_from == AddressFrom::tail) {
    claim = [&] { return io_lane_.claim(chunk.chunk.encoded_bytes); };
  }
  if (!settings_.shared->try_give(writer, chunk.chunk, chunk.data(), claim)) return false;
  budget_.give_back(chunk.budget_bytes);
  io_lane_.count_given();
  return true;
}

/// Complete this rank's gifts and those that it received, whichever rank writes them.
void Executor::finish_shared(ExecutorReport& report) {
  if (settings_.shared == nullptr) return;
  std::vector<SharedWrites::Receipt> receipts = settings_.shared->finish(
      [this](std::uint64_t address, std::span<const std::byte> bytes) {
        return io_lane_.write_foreign(address, bytes);
      },
      [this] { return failed(); },
      [this] {  // other ranks may wait for tail extents, which move while this thread is inside MPI
        tail_.service();
        const Status served = pieces_->serve();
        if (!served.ok()) fail(served);
      });
  for (SharedWrites::Receipt& receipt : receipts) {
    if (receipt.outcome == SharedWrites::Outcome::failed) fail(receipt.status);
    if (receipt.outcome != SharedWrites::Outcome::written) continue;
    report.written.push_back(receipt.chunk);
    if (receipt.writer != settings_.shared->rank_on_node()) ++report.n_moved_writes;
  }
}

/// Advance a dense layout's round if possible: the states of Round in turn; none of them blocks.
void Executor::advance_round() {
  if (round_ == Round::collecting) {
    const bool all_staged = next_job_ == ownership_.jobs.size();
    const bool full = out_of_budget_ && io_lane_.idle();
    if (!(all_staged || full) || !awaiting_pieces_.empty() || !encode_lane_.idle()) return;
    {
      const std::scoped_lock lock(mutex_);
      if (round_chunks_.empty()) round_chunks_.swap(held_);  // else a repeated try
    }
    std::uint64_t n_bytes = 0;
    for (const EncodedChunk& chunk : round_chunks_) n_bytes += chunk.data().size();
    sum_ = comm_.start_sum({n_bytes, all_staged ? 0U : 1U});
    round_ = Round::adding;
  }
  if (round_ == Round::adding && sum_->complete()) {
    round_before_ = sum_->before()[0];
    round_is_last_ = sum_->total()[1] == 0;
    // Rank 0 claims the round's bytes; the sum of its address and the others' zeros is the address.
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
  std::size_t next = 0;
  const Status placed = local_part([&] {
    for (; next < round_chunks_.size(); ++next) {
      EncodedChunk& chunk = round_chunks_[next];
      const ChunkSizes sizes{chunk.chunk.chunk_index, 0, 0, chunk.chunk.encoded_bytes};
      const Placement placement =
          plans_[chunk.chunk.field].layout->place(std::span(&sizes, 1), base)[0];
      chunk.chunk.address = placement.address;
      chunk.address_from = AddressFrom::place;
      waiting_.add(chunk.held_since_s, clock_.now_s());
      base += placement.capacity;
      io_lane_.push(std::move(chunk));
    }
    return Status();
  });
  for (; next < round_chunks_.size(); ++next) budget_.give_back(round_chunks_[next].budget_bytes);
  round_chunks_.clear();
  if (!placed.ok()) fail(placed);
}

/// After a failure: start nothing more, and release the ranks that hold pieces for this one.
void Executor::cancel_rest() {
  if (unstaged_ != nullptr) pieces_->cancel(*unstaged_);
  unstaged_ = nullptr;
  for (; next_job_ < ownership_.jobs.size(); ++next_job_) {
    pieces_->cancel(job_at(next_job_));
  }
}

bool Executor::finished() const {
  return next_job_ == ownership_.jobs.size() && unstaged_ == nullptr && round_ == Round::none &&
         pieces_->finished() && encode_lane_.idle() && io_lane_.idle();
}

std::uint64_t Executor::n_active() {
  const std::scoped_lock lock(mutex_);
  return n_active_;
}

void Executor::wait_for_activity(std::uint64_t seen) {
  const bool messages_may_come =
      !pieces_->finished() || round_ == Round::adding || round_ == Round::basing;
  std::chrono::microseconds limit = tail_.needs_service() ? kTailServiceInterval : kIdleInterval;
  if (messages_may_come) limit = kPollInterval;
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
  tail_.raise_failure();
  Status kept = local_part([&] {
    if (own_status_.ok()) own_status_ = failure;
    return Status();
  });
  if (!kept.ok()) own_status_ = std::move(kept);
}

bool Executor::failed() const { return tail_.failure_raised(); }

}  // namespace tailrace
