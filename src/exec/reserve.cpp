// Capacities, the prefix sum over the ranks, and the claim of the whole.

#include "exec/reserve.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <thread>

#include "layout/arena.hpp"

namespace tailrace {
namespace {

std::uint64_t round_up(std::uint64_t n_bytes, std::uint64_t unit) {
  return (n_bytes + unit - 1) / unit * unit;
}

/// No chunk needs more: what the codec puts out at most, or its values as they are.
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

/// Slots of this rank's chunks from address 0 on. @returns where they end.
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

/// The arena from `start` on. @returns where it ends.
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
  // Each write starts at a multiple of the alignment; at worst each chunk is a write.
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

/// Sum over the ranks before this one, and over all.
struct Sums {
  std::uint64_t before = 0;
  std::uint64_t total = 0;
};

Sums add_up(Comm& comm, Tail& tail, std::uint64_t n_bytes) {
  constexpr auto kLongestNap = std::chrono::microseconds(500);  // others may still be sampling
  const std::unique_ptr<PendingSum> sum = comm.start_sum({n_bytes});
  auto nap = std::chrono::microseconds(10);
  while (!sum->complete()) {
    tail.service();
    std::this_thread::sleep_for(nap);
    nap = std::min(2 * nap, kLongestNap);
  }
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

  const Sums sums = add_up(comm, tail, end);
  if (sums.total == 0) return places;
  std::uint64_t base = 0;
  if (comm.is_root()) base = round_up(tail.claim(sums.total + alignment - 1), alignment);
  comm.allreduce(std::span<std::uint64_t>(&base, 1), Reduction::max);
  base += sums.before;
  for (Placement& slot : places.slots) slot.address += base;
  places.arena.address += base;
  return places;
}

}  // namespace tailrace
