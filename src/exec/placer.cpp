// Reservations for chunks before they are encoded, and the address of each encoded chunk.

#include "exec/placer.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "layout/arena.hpp"

namespace tailrace {

namespace {

std::uint64_t round_up(std::uint64_t n_bytes, std::uint64_t unit) {
  return (n_bytes + unit - 1) / unit * unit;
}

/// Largest stored size of a chunk: the codec's largest output, or the raw values.
std::uint64_t largest_stored_bytes(const FieldPlan& plan) {
  const std::uint64_t raw_bytes = plan.chunk_bytes();
  return std::max(raw_bytes, plan.codec->encoded_bytes_max(raw_bytes));
}

double sensible_bytes(const FieldPlan& plan, const JobForecast& forecast) {
  const double bytes = forecast.encoded_bytes;
  if (!std::isfinite(bytes) || !(bytes > 0)) return static_cast<double>(plan.chunk_bytes());
  return std::min(bytes, static_cast<double>(largest_stored_bytes(plan)));
}

double sensible_deviation(const JobForecast& forecast) {
  return std::isfinite(forecast.deviation_bytes) ? std::max(forecast.deviation_bytes, 0.0) : 0;
}

/// Lay out the slots of this rank's chunks from address 0 on. @returns their end.
std::uint64_t lay_out_slots(std::span<const FieldPlan> plans, std::span<const ChunkJob> jobs,
                            std::span<const JobForecast> forecasts, std::uint64_t alignment,
                            Reservations& places) {
  std::uint64_t end = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const FieldPlan& plan = plans[jobs[j].field];
    if (!reserves(plan) || plan.layout->arena_goal() != nullptr) continue;
    const auto predicted =
        static_cast<std::uint64_t>(std::ceil(sensible_bytes(plan, forecasts[j])));
    const ChunkSizes sizes{jobs[j].chunk_index, plan.chunk_bytes(), predicted, 0};
    const std::uint64_t capacity =
        std::min(plan.layout->capacity(sizes), largest_stored_bytes(plan));
    places.slots[j] = {end, round_up(capacity, alignment)};
    places.field_bytes[jobs[j].field] += places.slots[j].capacity;
    end += places.slots[j].capacity;
  }
  return end;
}

/// Lay out the arena from `start` on. @returns its end.
std::uint64_t lay_out_arena(std::span<const FieldPlan> plans, std::span<const ChunkJob> jobs,
                            std::span<const JobForecast> forecasts, std::uint64_t alignment,
                            std::uint64_t start, Reservations& places) {
  std::vector<ArenaField> fields(plans.size());
  double expected_bytes = 0;
  std::uint64_t most_bytes = 0;
  std::uint64_t n_chunks = 0;
  for (std::size_t j = 0; j < jobs.size(); ++j) {
    const FieldPlan& plan = plans[jobs[j].field];
    if (plan.layout->arena_goal() == nullptr) continue;
    fields[jobs[j].field].goal = *plan.layout->arena_goal();
    fields[jobs[j].field].add(sensible_bytes(plan, forecasts[j]), sensible_deviation(forecasts[j]));
    places.arena_expected[j] = sensible_bytes(plan, forecasts[j]);
    expected_bytes += sensible_bytes(plan, forecasts[j]);
    most_bytes += largest_stored_bytes(plan);
    ++n_chunks;
  }
  if (n_chunks == 0) return start;
  // Each write starts at a multiple of the alignment; in the worst case each chunk is one write.
  const std::uint64_t n_bytes =
      std::min(arena_bytes(fields), most_bytes) + n_chunks * (alignment - 1);
  places.arena = {start, round_up(n_bytes, alignment)};
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const double share = fields[f].expected_bytes / expected_bytes;
    places.field_bytes[f] += static_cast<std::uint64_t>(
        std::llround(share * static_cast<double>(places.arena.capacity)));
  }
  return start + places.arena.capacity;
}

/// Sum over the ranks before this one, and over all ranks.
struct Sums {
  std::uint64_t before = 0;
  std::uint64_t total = 0;
};

Sums add_up(Comm& comm, std::uint64_t n_bytes) {
  const std::unique_ptr<PendingSum> sum = comm.start_sum({n_bytes});
  sum->wait();
  return {sum->before()[0], sum->total()[0]};
}

}  // namespace

Reservations reserve_places(Comm& comm, Tail& tail, std::span<const FieldPlan> plans,
                            std::span<const ChunkJob> jobs, std::span<const JobForecast> forecasts,
                            std::uint64_t alignment) {
  Reservations places;
  if (std::none_of(plans.begin(), plans.end(), reserves)) return places;
  TAILRACE_CHECK(forecasts.size() == jobs.size());
  places.slots.resize(jobs.size());
  places.arena_expected.resize(jobs.size());
  places.field_bytes.resize(plans.size());
  const std::uint64_t slots_end = lay_out_slots(plans, jobs, forecasts, alignment, places);
  const std::uint64_t end = lay_out_arena(plans, jobs, forecasts, alignment, slots_end, places);

  const Sums sums = add_up(comm, end);
  if (sums.total == 0) return places;
  std::uint64_t base = 0;
  if (comm.is_root()) base = round_up(tail.claim(sums.total + alignment - 1), alignment);
  comm.allreduce(std::span<std::uint64_t>(&base, 1), Reduction::max);
  base += sums.before;
  for (Placement& slot : places.slots) slot.address += base;
  places.arena.address += base;
  return places;
}

void reserve_by_shape(Comm& comm, Tail& tail, std::uint64_t alignment_bytes,
                      std::span<FieldPlan> plans) {
  constexpr std::uint64_t kElementAlignment = 8;  // so that a reader may map the values in place
  std::uint64_t n_bytes = 0;
  for (FieldPlan& plan : plans) {
    if (plan.layout->base_from() != BaseFrom::shape) continue;
    // A contiguous run ends with the field; all other slots have room for a full chunk.
    const std::uint64_t field_bytes =
        plan.layout->contiguous()
            ? n_elements(plan.grid.shape) * plan.element_bytes()
            : plan.grid.n_chunks() * plan.layout->capacity({0, plan.chunk_bytes(), 0, 0});
    plan.base_address = n_bytes;
    n_bytes += round_up(field_bytes, kElementAlignment);
  }
  if (n_bytes == 0) return;
  const std::uint64_t alignment = std::max(alignment_bytes, kElementAlignment);
  std::uint64_t base = 0;
  if (comm.is_root()) base = round_up(tail.claim(n_bytes + alignment - 1), alignment);
  comm.allreduce(std::span<std::uint64_t>(&base, 1), Reduction::max);
  for (FieldPlan& plan : plans) {
    if (plan.layout->base_from() == BaseFrom::shape) plan.base_address += base;
  }
}

// --- Places by shape, slots, the arena, and freed capacity.

Placer::Placer(std::span<const FieldPlan> plans, std::span<const ChunkJob> jobs,
               Reservations reservations, std::uint64_t alignment_bytes)
    : plans_(plans),
      jobs_(jobs),
      reservations_(std::move(reservations)),
      alignment_bytes_(alignment_bytes),
      arena_next_(reservations_.arena.address),
      tallies_(plans.size()) {
  TAILRACE_CHECK(reservations_.slots.empty() || reservations_.slots.size() == jobs.size());
  if (!reservations_.arena_expected.empty()) sum_up_arena();
  for (std::size_t f = 0; f < reservations_.field_bytes.size(); ++f) {
    tallies_[f].reserved_bytes = reservations_.field_bytes[f];
  }
  for (const ChunkJob& job : jobs) {
    const FieldPlan& plan = plans[job.field];
    if (plan.layout->base_from() != BaseFrom::shape) continue;
    // The last slab of a contiguous run ends with the field.
    tallies_[job.field].reserved_bytes +=
        plan.layout->contiguous()
            ? plan.values_box(job.chunk_index).n_elements() * plan.element_bytes()
            : own_place(job).capacity;
  }
}

void Placer::sum_up_arena() {
  const std::vector<double>& expected = reservations_.arena_expected;
  TAILRACE_CHECK(expected.size() == jobs_.size());
  arena_sums_.resize(plans_.size());
  std::vector<double> n_chunks(plans_.size());
  for (std::size_t j = 0; j < jobs_.size(); ++j) {
    arena_sums_[jobs_[j].field].to_come += expected[j];
    n_chunks[jobs_[j].field] += expected[j] > 0 ? 1 : 0;
  }
  for (std::size_t f = 0; f < arena_sums_.size(); ++f) {
    // Start with one mean chunk and a correct forecast, to damp the error of the first real chunk.
    ArenaSums& sums = arena_sums_[f];
    if (n_chunks[f] > 0) sums.seen_expected = sums.seen_encoded = sums.to_come / n_chunks[f];
  }
}

Placement Placer::own_place(const ChunkJob& job) const {
  const FieldPlan& plan = plans_[job.field];
  if (plan.layout->base_from() == BaseFrom::shape) {
    const ChunkSizes sizes{job.chunk_index, plan.chunk_bytes(), 0, 0};
    return plan.layout->place(std::span(&sizes, 1), plan.base_address)[0];
  }
  if (reservations_.slots.empty()) return {};
  return reservations_.slots[static_cast<std::size_t>(&job - jobs_.data())];
}

std::optional<std::uint64_t> Placer::place(const ChunkJob& job, std::uint64_t encoded_bytes) {
  const Placement own = own_place(job);
  if (encoded_bytes <= own.capacity) return own.address;
  // Search before the own place is added to the freed ones: it is too small in any case.
  const std::optional<std::uint64_t> address = place_overflow(job.field, encoded_bytes);
  if (own.capacity > 0) {
    const std::scoped_lock lock(mutex_);
    freed_.push_back(own);
  }
  return address;
}

bool Placer::arena_holds(std::uint64_t n_bytes) const {
  const Placement& arena = reservations_.arena;
  const std::uint64_t next = aligned(arena_next_);
  return arena.capacity > 0 && next + n_bytes <= arena.address + arena.capacity;
}

std::uint64_t Placer::take_from_arena(std::uint64_t n_bytes) {
  TAILRACE_CHECK(arena_holds(n_bytes));
  const std::uint64_t address = aligned(arena_next_);
  arena_next_ = address + n_bytes;
  return address;
}

void Placer::count_arena_chunk(const ChunkJob& job, std::uint64_t encoded_bytes) {
  const double expected =
      reservations_.arena_expected[static_cast<std::size_t>(&job - jobs_.data())];
  ArenaSums& sums = arena_sums_[job.field];
  sums.to_come -= expected;
  sums.seen_expected += expected;
  sums.seen_encoded += static_cast<double>(encoded_bytes);
}

std::uint64_t Placer::arena_bytes_to_come() const {
  double bytes = 0;
  for (const ArenaSums& sums : arena_sums_) {
    // Rounding may leave a small or negative rest.
    if (sums.to_come >= 1) bytes += sums.to_come * sums.seen_encoded / sums.seen_expected;
  }
  return static_cast<std::uint64_t>(std::ceil(bytes));
}

void Placer::move_arena(const Placement& run, std::size_t field, std::uint64_t n_bytes_known) {
  Placement& arena = reservations_.arena;
  const std::uint64_t next = aligned(arena_next_);
  const std::uint64_t end = arena.address + arena.capacity;
  const std::scoped_lock lock(mutex_);
  if (next < end) freed_.push_back({next, end - next});
  tallies_[field].reserved_bytes += run.capacity - n_bytes_known;
  arena = run;
  arena_next_ = run.address;
}

std::optional<std::uint64_t> Placer::place_overflow(std::size_t field,
                                                    std::uint64_t encoded_bytes) {
  const std::scoped_lock lock(mutex_);
  ++tallies_[field].n_overflow_chunks;
  Placement* best = nullptr;
  for (Placement& place : freed_) {
    if (place.capacity < encoded_bytes) continue;
    if (best == nullptr || place.capacity < best->capacity) best = &place;
  }
  if (best == nullptr) return std::nullopt;
  const std::uint64_t address = best->address;
  const std::uint64_t end = address + best->capacity;
  const std::uint64_t rest = aligned(address + encoded_bytes);
  *best = rest < end ? Placement{rest, end - rest} : Placement{};
  return address;
}

}  // namespace tailrace
