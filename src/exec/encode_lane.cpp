// Encoding of one chunk, and the queue of the encode threads.

#include "exec/encode_lane.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <optional>
#include <thread>
#include <utility>

#include "codec/verify.hpp"
#include "core/byte_order.hpp"
#include "core/fill_values.hpp"
#include "core/options.hpp"
#include "exec/thread_team.hpp"

namespace tailrace {

// --- Gather, pad, encode, verify: the work of an encode thread on one chunk.

namespace {

template <class T>
T clamp_to(double value) {
  if constexpr (std::is_floating_point_v<T>) return static_cast<T>(value);
  // Beyond the type's range a conversion is undefined, so it saturates; NaN becomes 0.
  if (!(value == value)) return T{0};
  if (value <= static_cast<double>(std::numeric_limits<T>::lowest())) {
    return std::numeric_limits<T>::lowest();
  }
  if (value >= static_cast<double>(std::numeric_limits<T>::max())) {
    return std::numeric_limits<T>::max();
  }
  return static_cast<T>(value);
}

template <class T>
void fill_as(double value, std::span<std::byte> bytes) {
  const T element = clamp_to<T>(value);
  fill_values(bytes, std::as_bytes(std::span(&element, 1)));
}

void fill_with_number(DType dtype, double value, std::span<std::byte> bytes) {
  switch (dtype) {
    case DType::f32: return fill_as<float>(value, bytes);
    case DType::f64: return fill_as<double>(value, bytes);
    case DType::i8: return fill_as<std::int8_t>(value, bytes);
    case DType::i16: return fill_as<std::int16_t>(value, bytes);
    case DType::i32: return fill_as<std::int32_t>(value, bytes);
    case DType::i64: return fill_as<std::int64_t>(value, bytes);
    case DType::u8: return fill_as<std::uint8_t>(value, bytes);
    case DType::u16: return fill_as<std::uint16_t>(value, bytes);
    case DType::u32: return fill_as<std::uint32_t>(value, bytes);
    case DType::u64: return fill_as<std::uint64_t>(value, bytes);
  }
}

Status at_chunk(const FieldPlan& plan, std::uint64_t chunk_index, const Status& failure) {
  return failure.within("field \"" + plan.path + "\", chunk " +
                        box_text(plan.grid.clipped_box(chunk_index)));
}

/// Lossy filters may refuse chunks that would be corrupted or crash them (SZ3 and NaN), even
/// without verification.
bool may_refuse(const FieldPlan& plan) {
  return plan.codec->lossy() && !plan.codec->keeps_bound_by_construction();
}

/// True if the values may be needed after they are encoded.
bool keeps_values(const FieldPlan& plan) {
  return may_refuse(plan) || (plan.beginnings != nullptr && plan.beginnings->joins());
}

std::string describe(const FieldPlan& plan, const ChunkComparison& found) {
  std::string text = "codec " + std::string(plan.codec->name());
  if (found.n_beyond_bound > 0) {
    const bool pointwise = plan.pointwise_bound > 0;
    text += " exceeded bound " +
            error_bound_text(pointwise ? ErrorBound{BoundMode::pw_rel, plan.pointwise_bound}
                                       : ErrorBound{BoundMode::abs, plan.absolute_bound}) +
            " on " + std::to_string(found.n_beyond_bound) + " values (largest " +
            (pointwise ? "relative " : "") + "error " + number_text(found.largest_error) + ")";
  }
  if (found.n_special_changed > 0) {
    text += std::string(found.n_beyond_bound > 0 ? " and" : "") + " changed " +
            std::to_string(found.n_special_changed) + " NaN, Inf or fill values";
  }
  return text;
}

ChunkComparison compare(const FieldPlan& plan, std::span<const std::byte> original,
                        std::span<const std::byte> decoded) {
  if (plan.pointwise_bound > 0) {
    return compare_pointwise(plan.dtype, original, decoded, plan.pointwise_bound, plan.fill_value);
  }
  return compare_values(plan.dtype, original, decoded, plan.absolute_bound, plan.fill_value);
}

}  // namespace

Result<Buffer> make_chunk_buffer(const FieldPlan& plan, const ChunkJob& job, MemoryBudget* budget) {
  const std::uint64_t n_bytes =
      plan.values_box(job.chunk_index).n_elements() * plan.element_bytes();
  Buffer values = budget == nullptr ? Buffer(n_bytes) : budget->new_block(n_bytes);
  if (!values.allocated()) {
    return at_chunk(plan, job.chunk_index,
                    Status(Code::out_of_memory,
                           "no memory for " + bytes_text(plan.chunk_bytes()) + " of values"));
  }
  if (plan.allow_holes || plan.pad_with_fill) {
    if (plan.stored_fill) {
      fill_values(values.bytes(), *plan.stored_fill);
    } else {
      fill_with_number(plan.dtype, plan.fill_value.value_or(0.0), values.bytes());
    }
  }
  return values;
}

void gather_local_parts(const FieldPlan& plan, const ChunkJob& job, Buffer& values) {
  const Box target = plan.values_box(job.chunk_index);
  for (const LocalPart& part : job.local) {
    const PutRecord& put = plan.puts[part.put_index];
    if (put.values == nullptr) continue;
    put.copy_to(part.box, target, values.data(), plan.element_bytes());
  }
}

void pad_edges(const FieldPlan& plan, const ChunkJob& job, Buffer& values) {
  const Box held = plan.grid.clipped_box(job.chunk_index);
  const Box full = plan.values_box(job.chunk_index);
  if (plan.pad_with_fill || held == full) return;
  // Innermost dimension first, so that outer dimensions repeat rows that are already padded.
  std::uint64_t run_bytes = plan.element_bytes();
  for (std::size_t d = full.rank(); d-- > 0;) {
    const std::uint64_t n_held = held.count[d];
    const std::uint64_t n_full = full.count[d];
    Box outer;
    outer.start.assign(d, 0);
    outer.count.assign(held.count.begin(), held.count.begin() + static_cast<std::ptrdiff_t>(d));
    for_each_position(outer, [&](const Shape& at) {
      std::uint64_t row = 0;
      for (std::size_t o = 0; o < d; ++o) row = row * full.count[o] + at[o];
      std::byte* line = values.data() + row * n_full * run_bytes;
      for (std::uint64_t i = n_held; i < n_full; ++i) {
        std::memcpy(line + i * run_bytes, line + (n_held - 1) * run_bytes, run_bytes);
      }
    });
    run_bytes *= n_full;
  }
}

std::span<const std::byte> borrow_values(const FieldPlan& plan, const ChunkJob& job) {
  if (!plan.codec->filters().empty() || plan.verify || plan.edit != nullptr) return {};
  if (plan.beginnings != nullptr || plan.swapped) return {};
  if (!job.remote.empty() || job.local.size() != 1) return {};
  const Box& part = job.local.front().box;
  const PutRecord& put = plan.puts[job.local.front().put_index];
  const bool in_rows = put.values != nullptr && put.strides.empty();
  if (!in_rows || part != plan.values_box(job.chunk_index)) return {};
  // One run: after the first dimension with more than one row, the part covers the whole array.
  const Shape& held = put.held.empty() ? put.box.count : put.held;
  std::uint64_t first = 0;
  bool inner = false;
  for (std::size_t d = 0; d < part.rank(); ++d) {
    if (inner && part.count[d] != held[d]) return {};
    inner = inner || part.count[d] > 1;
    first = first * held[d] + part.start[d] - put.box.start[d];
  }
  return {put.values + first * plan.element_bytes(), part.n_elements() * plan.element_bytes()};
}

Result<ChunkOutcome> encode_chunk(const FieldPlan& plan, std::uint64_t chunk_index,
                                  Buffer& values) {
  ChunkOutcome outcome;
  Result<std::unique_ptr<Codec>> own = plan.codec->made_for(plan.grid, chunk_index);
  if (!own.ok()) return at_chunk(plan, chunk_index, own.status());
  const Codec& codec = *own != nullptr ? **own : plan.codec->of_chunk(chunk_index);
  const ChunkBeginnings* const begun = plan.beginnings;
  const bool joins = begun != nullptr && begun->joins();
  if (begun != nullptr && !joins) {
    const Status completed = begun->complete(chunk_index, values);
    if (!completed.ok()) return at_chunk(plan, chunk_index, completed);
  }
  if (!plan.verify && !keeps_values(plan)) {
    Result<EncodedBytes> encoded = codec.encodes_apart()
                                       ? codec.encode_from(std::as_const(values).bytes())
                                       : codec.encode(std::move(values));
    if (!encoded.ok()) return at_chunk(plan, chunk_index, encoded.status());
    outcome.encoded = std::move(*encoded);
    return outcome;
  }
  Result<EncodedBytes> encoded = codec.encode_from(std::as_const(values).bytes());
  Status verdict = encoded.status();
  if (verdict.ok() && joins) verdict = begun->join(chunk_index, *encoded);
  if (joins && (plan.verify || !verdict.ok())) {
    const Status completed = begun->complete(chunk_index, values);
    if (!completed.ok()) return at_chunk(plan, chunk_index, completed);
  }
  const auto verify_start = std::chrono::steady_clock::now();
  if (verdict.ok() && plan.verify) {
    EncodedBytes again{Buffer::copy_of(encoded->buffer.bytes()), encoded->filter_mask};
    Result<Buffer> decoded = plan.codec->decode(std::move(again));
    verdict = decoded.status();
    if (verdict.ok()) {
      const ChunkComparison found = compare(plan, values.bytes(), decoded->bytes());
      outcome.max_error = found.largest_error;
      if (!found.within_bound()) verdict = Status(Code::bound_broken, describe(plan, found));
    }
  }
  if (plan.verify) {
    outcome.verify_s =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - verify_start).count();
  }
  if (verdict.ok()) {
    outcome.encoded = std::move(*encoded);
    return outcome;
  }
  const bool of_codec = verdict.code() != Code::out_of_memory && verdict.code() != Code::io_error;
  if (!plan.fall_back_to_raw || !of_codec) {
    return at_chunk(plan, chunk_index, verdict);
  }
  const double verify_s = outcome.verify_s;
  outcome = store_raw(plan, std::move(values));
  outcome.verify_s = verify_s;
  return outcome;
}

ChunkOutcome store_raw(const FieldPlan& plan, Buffer values) {
  if (plan.swapped) swap_elements(values.bytes(), plan.element_bytes());
  ChunkOutcome outcome;
  outcome.stored_raw = true;
  outcome.encoded.filter_mask =
      static_cast<std::uint32_t>((1ULL << plan.codec->filters().size()) - 1);
  outcome.encoded.buffer = std::move(values);
  return outcome;
}

std::uint64_t encode_memory_bytes(const FieldPlan& plan) {
  const std::uint64_t raw = plan.chunk_bytes();
  const std::uint64_t patched = (plan.patches == nullptr ? 0 : plan.patches->extra_bytes()) +
                                (plan.beginnings == nullptr ? 0 : plan.beginnings->extra_bytes());
  if (plan.codec->filters().empty() && !plan.verify) return raw + patched;
  const std::uint64_t most = plan.codec->encoded_bytes_max(raw);
  const std::uint64_t working = plan.codec->working_bytes(raw);
  // Verifying needs the values, the codec's copy of them, the output, and a copy of that to decode.
  const std::uint64_t encoding = plan.verify          ? 2 * raw + 2 * most + working
                                 : keeps_values(plan) ? 2 * raw + most + working
                                                      : raw + most + working;
  if (plan.edit == nullptr) return encoding + patched;
  // An edit needs the values, the modified copy and the smallest output so far. It ends before the
  // codec begins.
  return raw + most + std::max(encoding, raw + plan.edit->working_bytes(raw)) + patched;
}

// --- The loop of the encoding threads.

namespace {

constexpr std::uint64_t kHeldBackMost = 16U << 20;  // about 2 ms of copying
constexpr auto kMemoryNap = std::chrono::microseconds(200);
/// A wait in MPI is used once it has lasted so long: this time, and this share of the last chunk's.
constexpr double kLeastWaitS = 100e-6;
constexpr double kWaitShare = 0.25;
constexpr double kLongestNapS = 1e-3;  // between two looks at a program that computes

/// Encode a chunk with complete values in each of the ways of its plan, and keep the smallest
/// result. The chunk's own values precede its pad, since only fields of one dimension are edited.
Result<ChunkOutcome> pad_and_encode(const FieldPlan& plan, const ChunkJob& job, bool pads,
                                    Buffer& values) {
  const auto finish = [&](Buffer& complete) {
    if (pads) pad_edges(plan, job, complete);
    return encode_chunk(plan, job.chunk_index, complete);
  };
  const std::uint64_t n_values = plan.grid.clipped_box(job.chunk_index).n_elements();
  ChunkEdit::Ways ways;
  if (plan.edit != nullptr) {
    const bool lossy = plan.codec->of_chunk(job.chunk_index).lossy();
    ways = plan.edit->ways(job.chunk_index, n_values, lossy);
  }
  if (ways.n == 0) return finish(values);
  std::optional<ChunkOutcome> best;
  const std::size_t n_tries = ways.n + (ways.unchanged ? 1 : 0);
  for (std::size_t way = 0; way < n_tries; ++way) {
    Buffer copy;
    if (way + 1 < n_tries) {
      copy = Buffer::copy_of(values.bytes());
      if (!copy.allocated()) {
        return at_chunk(
            plan, job.chunk_index,
            Status(Code::out_of_memory, "no memory for a copy of " + bytes_text(values.n_bytes())));
      }
    }
    Buffer& tried = way + 1 < n_tries ? copy : values;
    if (way < ways.n) {
      plan.edit->apply(job.chunk_index, way, tried.bytes().first(n_values * plan.element_bytes()));
    }
    Result<ChunkOutcome> outcome = finish(tried);
    if (!outcome.ok()) return outcome;
    const bool smaller =
        !best || outcome->encoded.buffer.n_bytes() < best->encoded.buffer.n_bytes();
    if (smaller) best = std::move(*outcome);
  }
  return std::move(*best);
}

/// Gather this rank's values into the chunk's buffer, pad the edges, encode.
Result<ChunkOutcome> gather_and_encode(const FieldPlan& plan, StagedChunk& chunk,
                                       MemoryBudget& budget) {
  if (chunk.encoded) {
    ChunkOutcome outcome;
    outcome.encoded = std::move(*chunk.encoded);
    return outcome;
  }
  if (!chunk.values.allocated()) {
    Result<Buffer> values = make_chunk_buffer(plan, *chunk.job, &budget);
    if (!values.ok()) return values.status();
    chunk.values = std::move(*values);
  }
  if (plan.patches != nullptr) {
    const std::uint64_t chunk_index = chunk.job->chunk_index;
    const auto completed = plan.patches->complete(chunk_index, chunk.values);
    if (!completed.ok()) return completed.status();
    if (completed->store_raw) {
      if (completed->fresh) pad_edges(plan, *chunk.job, chunk.values);
      return store_raw(plan, std::move(chunk.values));
    }
    if (completed->keep_decoded) {
      FieldPlan keeping = plan;
      keeping.codec = plan.codec->keeping_decoded();
      keeping.edit = nullptr;  // An edit would change values that the file has.
      return pad_and_encode(keeping, *chunk.job, false, chunk.values);
    }
    if (completed->beginnings != nullptr) {
      FieldPlan joining = plan;
      joining.beginnings = completed->beginnings.get();
      joining.edit = nullptr;
      joining.fall_back_to_raw = true;  // The values in the file cannot be encoded again.
      return pad_and_encode(joining, *chunk.job, false, chunk.values);
    }
    Result<ChunkOutcome> outcome = pad_and_encode(plan, *chunk.job, completed->fresh, chunk.values);
    if (outcome.ok()) plan.patches->encoded(chunk_index, outcome->encoded);
    return outcome;
  }
  if (!chunk.gathered) gather_local_parts(plan, *chunk.job, chunk.values);
  return pad_and_encode(plan, *chunk.job, true, chunk.values);
}

}  // namespace

EncodeLane::EncodeLane(ThreadTeam& threads, IdleWaits* waits, Tail& tail,
                       std::span<const FieldPlan> plans, MemoryBudget& budget, std::int32_t rank,
                       const LaneClock& clock, Trace* trace,
                       std::function<void(EncodedChunk)> encoded, std::function<void()> activity)
    : tail_(tail),
      plans_(plans),
      budget_(budget),
      rank_(rank),
      clock_(clock),
      trace_(trace),
      encoded_(std::move(encoded)),
      activity_(std::move(activity)),
      tallies_(plans.size()),
      threads_(threads) {
  const std::uint64_t n_helpers = threads.start_helpers();
  const std::uint64_t n_wanted = threads.n_threads() - 1 - (waits != nullptr ? 1 : 0);
  n_threads_ = std::min(n_helpers, n_wanted);
  if (n_helpers > n_threads_) waits_ = waits;
  at_work_.resize(n_threads_);
}

EncodeLane::~EncodeLane() { finish(); }

void EncodeLane::push(StagedChunk chunk) {
  const std::scoped_lock lock(mutex_);
  // The woken thread blocks on the lock. If anything throws, the chunk is not in the queue.
  const std::uint64_t held_bytes = amount_waiting_.budget_bytes + chunk.budget_bytes;
  if (!held_back_) {
    if (n_at_work_ < n_threads_) wake_one();
  } else if (held_bytes > kHeldBackMost) {
    wake_for(waiting_.size() + 1);
    held_back_ = false;
  }
  StagedAmount with_chunk = amount_waiting_;
  with_chunk.add(chunk);
  waiting_.push_back(std::move(chunk));
  amount_waiting_ = with_chunk;
}

void EncodeLane::hold_back() {
  const std::scoped_lock lock(mutex_);
  held_back_ = true;
}

void EncodeLane::let_go() {
  const std::scoped_lock lock(mutex_);
  if (waits_ != nullptr && !in_waits_at_work_ && !waiting_.empty()) {
    in_waits_at_work_ = threads_.post([this] { encode_in_waits(); });
  }
  if (!held_back_) return;
  wake_for(waiting_.size());
  held_back_ = false;
}

/// Wake one thread per chunk, as far as threads rest. Requires mutex_.
void EncodeLane::wake_for(std::size_t n_chunks) {
  for (std::size_t n = n_chunks; n > 0 && n_at_work_ < n_threads_; --n) wake_one();
}

/// Wake a resting thread; one must exist. Requires mutex_.
void EncodeLane::wake_one() {
  const auto resting = std::find(at_work_.begin(), at_work_.end(), false);
  const auto lane_number = static_cast<std::int32_t>(resting - at_work_.begin()) + 1;
  *resting = threads_.post([this, lane_number] { run(lane_number); });  // One exists: it rests.
  if (*resting) ++n_at_work_;
}

StagedAmount EncodeLane::waiting() const {
  const std::scoped_lock lock(mutex_);
  return amount_waiting_;
}

bool EncodeLane::idle() const {
  const std::scoped_lock lock(mutex_);
  return waiting_.empty() && n_running_ == 0;
}

Status EncodeLane::status() const {
  const std::scoped_lock lock(mutex_);
  return status_;
}

/// Return `wished` if the budget has memory to encode it. Otherwise return the first chunk that
/// needs no more memory, since the others may wait for what it holds; end() if none exists. Once
/// the step has failed, chunks are dropped and need no memory. Requires mutex_.
EncodeLane::Place EncodeLane::affordable(const Place& wished) {
  if (tail_.failure_raised()) {
    wished->extra_bytes = 0;
    return wished;
  }
  if (budget_.try_take(wished->extra_bytes)) return wished;
  return std::ranges::find(waiting_, std::uint64_t{0}, &StagedChunk::extra_bytes);
}

/// Remove a chunk from the queue for encoding. Requires mutex_.
StagedChunk EncodeLane::take(const Place& place) {
  StagedChunk chunk = std::move(*place);
  waiting_.erase(place);
  amount_waiting_.remove(chunk);
  chunk.budget_bytes += std::exchange(chunk.extra_bytes, 0);
  ++n_running_;
  return chunk;
}

bool EncodeLane::encode_here(const LaneOutlook& outlook) {
  StagedChunk chunk;
  {
    const std::scoped_lock lock(mutex_);
    std::vector<double> lengths_s;
    for (const StagedChunk& waiting : waiting_) lengths_s.push_back(waiting.encode_s);
    const std::optional<std::size_t> picked = pick_operation(lengths_s, outlook);
    if (!picked) return false;
    const Place wished = waiting_.begin() + static_cast<std::ptrdiff_t>(*picked);
    const Place place = affordable(wished);
    if (place == waiting_.end()) return false;
    if (place != wished && !pick_operation({&place->encode_s, 1}, outlook)) return false;
    chunk = take(place);
  }
  encode(std::move(chunk), 0);
  {
    const std::scoped_lock lock(mutex_);
    --n_running_;
  }
  activity_();
  return true;
}

void EncodeLane::finish() {
  std::unique_lock lock(mutex_);
  is_finishing_ = true;
  finishing_.notify_all();
  rested_.wait(lock, [this] { return n_at_work_ == 0 && !in_waits_at_work_; });
}

void EncodeLane::run(std::int32_t lane_number) {
  while (true) {
    std::optional<StagedChunk> chunk;
    {
      const std::scoped_lock lock(mutex_);
      if (waiting_.empty()) {
        at_work_[static_cast<std::size_t>(lane_number) - 1] = false;
        if (--n_at_work_ == 0) rested_.notify_all();
        return;
      }
      const Place place = affordable(waiting_.begin());
      if (place != waiting_.end()) chunk = take(place);
    }
    if (!chunk) {
      std::this_thread::sleep_for(kMemoryNap);
      continue;
    }
    encode(std::move(*chunk), lane_number);
    {
      const std::scoped_lock lock(mutex_);
      --n_running_;
    }
    activity_();
  }
}

/// Encode waiting chunks while the program waits in MPI, until none is left or finish() is called.
void EncodeLane::encode_in_waits() {
  waits_->n_workers.fetch_add(1, std::memory_order_relaxed);
  std::uint32_t n_changes = 0;  // An even number: no wait is known.
  double since_s = clock_.now_s();
  double encode_s = 0;  // The last chunk took so long.
  std::unique_lock lock(mutex_);
  while (!waiting_.empty() && !is_finishing_) {
    const double now_s = clock_.now_s();
    const std::uint32_t seen = waits_->n_changes.load(std::memory_order_relaxed);
    if (seen != n_changes) {
      n_changes = seen;
      since_s = now_s;
    }
    const bool lasts =
        seen % 2 != 0 && now_s - since_s >= std::max(kLeastWaitS, kWaitShare * encode_s);
    const Place place = lasts ? affordable(waiting_.begin()) : waiting_.end();
    if (place == waiting_.end()) {
      const std::chrono::duration<double> nap(
          std::clamp((now_s - since_s) / 8, kLeastWaitS, kLongestNapS));
      finishing_.wait_for(lock, nap, [this] { return is_finishing_; });
      continue;
    }
    StagedChunk chunk = take(place);
    ++n_in_waits_;
    lock.unlock();
    encode(std::move(chunk), static_cast<std::int32_t>(n_threads_) + 1);
    const double end_s = clock_.now_s();
    encode_s = end_s - now_s;
    (void)local_part([&] {
      in_waits_.add(now_s, end_s);
      return Status();
    });
    lock.lock();
    --n_running_;
    lock.unlock();
    activity_();
    lock.lock();
  }
  waits_->n_workers.fetch_sub(1, std::memory_order_relaxed);
  in_waits_at_work_ = false;
  if (n_at_work_ == 0) rested_.notify_all();
}

/// Encode a chunk and pass it on. An exception becomes the lane's failure: it neither ends the
/// process nor leaves the chunk counted as running.
void EncodeLane::encode(StagedChunk chunk, std::int32_t lane_number) {
  if (tail_.failure_raised()) {
    budget_.give_back(chunk.budget_bytes);
    return;
  }
  Status done = local_part([&] { return encode_catching(chunk, lane_number); });
  if (done.ok()) return;
  budget_.give_back(chunk.budget_bytes);
  const std::scoped_lock lock(mutex_);
  if (status_.ok()) status_ = std::move(done);
  tail_.raise_failure();
}

/// Turn an exception into a failure that names the field.
Status EncodeLane::encode_catching(StagedChunk& chunk, std::int32_t lane_number) {
  bool returned = false;
  const Status done = local_part([&] {
    Status encoded = encode_and_hand_on(chunk, lane_number);
    returned = true;
    return encoded;
  });
  if (done.ok() || returned) return done;
  const FieldPlan& plan = plans_[chunk.job->field];
  const std::string where = "field \"" + plan.path + "\": codec " + std::string(plan.codec->name());
  if (done.code() == Code::out_of_memory) return done.within(where);
  return Status(Code::codec_failed, where + " threw an exception: " + done.message());
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
  Result<ChunkOutcome> outcome = gather_and_encode(plan, chunk, budget_);
  if (chunk.values.allocated()) budget_.keep(std::move(chunk.values));
  if (!outcome.ok()) return outcome.status();
  const double end_s = clock_.now_s();
  record(chunk, lane_number, start_s, end_s, outcome->verify_s);

  EncodedChunk encoded;
  encoded.bytes = std::move(outcome->encoded.buffer);
  encoded.is_values = outcome->stored_raw || plan.codec->filters().empty();
  hand_on(chunk, std::move(encoded), *outcome, end_s - start_s - outcome->verify_s);
  return Status();
}

/// Account for a finished chunk, shrink its budget to what it still holds, and pass it on.
void EncodeLane::hand_on(StagedChunk& chunk, EncodedChunk encoded, const ChunkOutcome& outcome,
                         double encode_s) {
  const FieldPlan& plan = plans_[chunk.job->field];
  const std::uint64_t n_bytes = encoded.data().size();
  encoded.chunk = {chunk.job->field, chunk.job->chunk_index, 0, n_bytes,
                   outcome.encoded.filter_mask};
  encoded.job = chunk.job;
  encoded.budget_bytes = std::min<std::uint64_t>(encoded.bytes.n_bytes(), chunk.budget_bytes);
  budget_.give_back(chunk.budget_bytes - encoded.budget_bytes);
  chunk.budget_bytes = encoded.budget_bytes;
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
  chunk.budget_bytes = 0;  // The budget now belongs to the receiver.
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
