// Own places, the arena, and freed capacity.

#include "exec/placer.hpp"

#include <cmath>
#include <utility>

namespace tailrace {

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
    // One mean chunk that was forecast rightly, so that the first one's error is not all there is.
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
  // Looked for before the own place is added: it is too small in any case.
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
    // Rounding may leave a little, or less than nothing.
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
