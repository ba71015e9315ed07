// A node's iteration: check, plan, balance, then run the clock.

#include "simulate/simulate_node.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string>
#include <utility>

#include "simulate/simulate_clock.hpp"

namespace tailrace {
namespace {

constexpr std::array<VirtualModeEntry, 6> registry = {{
    {VirtualMode::sync_raw, "sync-raw",
     "written after the iteration, not compressed: the baseline"},
    {VirtualMode::sync_encoded, "sync-encoded", "encoded and written after the iteration"},
    {VirtualMode::async_raw, "async-raw", "written in the background, not compressed"},
    {VirtualMode::async_encoded, "async-encoded",
     "encoded on cores of their own, written in the background"},
    {VirtualMode::in_situ, "in-situ", "encoded and written in idle time, by a plan"},
    {VirtualMode::hdf5_filters, "hdf5-filters",
     "HDF5's collective writes with filters, in the same terms"},
}};

bool is_raw(VirtualMode mode) {
  return mode == VirtualMode::sync_raw || mode == VirtualMode::async_raw;
}

/// Indices of the jobs in their given order.
std::vector<std::size_t> given_order(std::size_t n_jobs) {
  std::vector<std::size_t> order(n_jobs);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

Status check(const VirtualRank& rank, const VirtualSettings& settings) {
  const std::size_t n_jobs = rank.actual.jobs.size();
  if (rank.forecast.jobs.size() != n_jobs) {
    return Status(Code::invalid_argument,
                  fmt::format("the forecast has {} jobs, the iteration has {}",
                              rank.forecast.jobs.size(), n_jobs));
  }
  for (const auto* bytes : {&rank.raw_bytes, &rank.encoded_bytes}) {
    if (bytes->size() == n_jobs || (bytes->empty() && !is_raw(settings.mode))) continue;
    return Status(
        Code::invalid_argument,
        fmt::format("bytes are given for {} jobs, the iteration has {}", bytes->size(), n_jobs));
  }
  if (rank.raw_bytes.size() != rank.encoded_bytes.size()) {
    return Status(Code::invalid_argument, "raw and encoded bytes must be given for the same jobs");
  }
  TAILRACE_TRY(check_flow_shop(rank.forecast).within("forecast"));
  TAILRACE_TRY(check_flow_shop(rank.actual).within("actual"));
  if (settings.memory_bytes == 0 || is_raw(settings.mode)) return Status();
  for (const std::uint64_t bytes : rank.raw_bytes) {
    const std::uint64_t needed = settings.hold_copy ? 2 * bytes : bytes;
    if (needed <= settings.memory_bytes) continue;
    return Status(Code::invalid_argument,
                  fmt::format("encoding a chunk needs {} bytes, more than the memory limit of {}",
                              needed, settings.memory_bytes));
  }
  return Status();
}

/// Convert an iteration to uncompressed chunks. A raw write deviates from its expected time by the
/// same factor as the encoded write.
void make_raw(VirtualRank& rank, const VirtualSettings& settings) {
  const auto raw_s = [&](const JobCost& cost, std::size_t job) {
    const auto raw = static_cast<double>(rank.raw_bytes[job]);
    const double encoded = std::max(static_cast<double>(rank.encoded_bytes[job]), 1.0);
    if (!settings.write_s) return cost.write_s * raw / encoded;
    const double expected_s = settings.write_s(encoded);
    return expected_s > 0 ? settings.write_s(raw) * cost.write_s / expected_s : 0;
  };
  for (std::size_t job = 0; job < rank.actual.jobs.size(); ++job) {
    rank.actual.jobs[job] = {0, raw_s(rank.actual.jobs[job], job)};
    // The forecast's size differs from the actual one, so use the expected time of the raw bytes
    // only.
    const auto raw = static_cast<double>(rank.raw_bytes[job]);
    rank.forecast.jobs[job] = {
        0, settings.write_s ? settings.write_s(raw) : raw_s(rank.forecast.jobs[job], job)};
  }
  rank.encoded_bytes = rank.raw_bytes;
}

/// Move writes between ranks (3.4). A rank writes the chunks of other ranks last.
void balance(std::span<const VirtualRank> ranks, const VirtualSettings& settings,
             std::span<const std::vector<double>> loads_s,
             const std::vector<std::vector<std::size_t>>& write_order, NodePlan& plan) {
  if (settings.balance == BalanceRule::off || ranks.size() < 2) return;
  std::vector<std::vector<double>> writes_s(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    for (const std::size_t job : write_order[r]) {
      const bool known = !loads_s.empty() && job < loads_s[r].size();
      writes_s[r].push_back(known ? loads_s[r][job] : ranks[r].forecast.jobs[job].write_s);
    }
  }
  std::vector<std::size_t> last(ranks.size());
  for (std::size_t r = 0; r < ranks.size(); ++r) last[r] = write_order[r].size();
  for (const MovedWrite& move : balance_writes(writes_s, settings.balance)) {
    const std::size_t job = write_order[move.from_rank][move.position];
    plan.writer[move.from_rank][job] = move.to_rank;
    plan.position[move.from_rank][job] = last[move.to_rank]++;
  }
}

/// HDF5's collective write of filtered chunks: a rank encodes all of its chunks, then all ranks
/// write them in one call (H5D__link_chunk_filtered_collective_io). The model omits the waits of
/// ranks between two datasets, in HDF5's favour; step_costs() counts the other costs.
VirtualOutcome write_by_filters(const VirtualRank& rank, std::size_t index,
                                const VirtualSettings& settings,
                                std::vector<VirtualEvent>* events) {
  VirtualOutcome outcome;
  outcome.computation_s = rank.actual.iteration_s;
  for (const Lane lane : {Lane::main, Lane::io}) {
    for (const Obstacle& obstacle : rank.actual.obstacles.of(lane)) {
      outcome.computation_s = std::max(outcome.computation_s, obstacle.end_s);
      if (events == nullptr) continue;
      events->push_back(
          {VirtualEvent::Kind::obstacle, lane, index, {}, 0, obstacle.start_s, obstacle.end_s});
    }
  }
  outcome.application_s = outcome.computation_s;
  VirtualEvent write{VirtualEvent::Kind::write, Lane::io, index, {}, 0, 0, 0};
  double now_s = outcome.application_s;
  double apart_s = 0;
  for (std::size_t job = 0; job < rank.actual.jobs.size(); ++job) {
    const JobCost& cost = rank.actual.jobs[job];
    const std::uint64_t raw_bytes = rank.raw_bytes.empty() ? 0 : rank.raw_bytes[job];
    const std::uint64_t encoded_bytes = rank.encoded_bytes.empty() ? 0 : rank.encoded_bytes[job];
    if (events != nullptr) {
      events->push_back({VirtualEvent::Kind::encode,
                         Lane::main,
                         index,
                         {{index, job}},
                         raw_bytes,
                         now_s,
                         now_s + cost.encode_s});
    }
    now_s += cost.encode_s;
    outcome.encode_s += cost.encode_s;
    outcome.write_s += cost.write_s;
    outcome.written_bytes += encoded_bytes;
    outcome.peak_bytes += encoded_bytes;
    if (settings.write_s) apart_s += settings.write_s(static_cast<double>(encoded_bytes));
    write.jobs.push_back({index, job});
  }
  // Like the I/O lane: the sum of the chunks' own times, reduced by the gain of one combined write.
  if (apart_s > 0) {
    outcome.write_s *= settings.write_s(static_cast<double>(outcome.written_bytes)) / apart_s;
  }
  outcome.n_encoded = outcome.n_written = rank.actual.jobs.size();
  outcome.n_writes = rank.actual.jobs.empty() ? 0 : 1;
  outcome.makespan_s = outcome.total_s = now_s + outcome.write_s;
  outcome.exposed_s = outcome.total_s - outcome.application_s;
  if (events != nullptr && outcome.n_writes > 0) {
    write.n_bytes = outcome.written_bytes;
    write.start_s = now_s;
    write.end_s = outcome.total_s;
    events->push_back(std::move(write));
  }
  return outcome;
}

NodePlan make_plan(std::span<const VirtualRank> ranks, const VirtualSettings& settings,
                   std::span<const std::vector<double>> loads_s) {
  NodePlan plan;
  std::vector<std::vector<std::size_t>> write_order;
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::size_t n_jobs = ranks[r].actual.jobs.size();
    plan.writer.emplace_back(n_jobs, r);
    if (settings.mode != VirtualMode::in_situ) {
      plan.encode_order.push_back(given_order(n_jobs));
      continue;
    }
    FlowShopPlan own = schedule_flow_shop(ranks[r].forecast, settings.scheduler, settings.budget);
    plan.planned_s.push_back(own.makespan_s);
    std::vector<std::size_t>& position = plan.position.emplace_back(n_jobs);
    for (std::size_t p = 0; p < n_jobs; ++p) position[own.write_order[p]] = p;
    plan.encode_order.push_back(std::move(own.encode_order));
    write_order.push_back(std::move(own.write_order));
  }
  if (settings.mode == VirtualMode::in_situ) balance(ranks, settings, loads_s, write_order, plan);
  return plan;
}

}  // namespace

std::span<const VirtualModeEntry> virtual_mode_registry() { return registry; }

std::string_view virtual_mode_name(VirtualMode mode) {
  return registry[static_cast<std::size_t>(mode)].name;
}

Result<VirtualMode> parse_virtual_mode(std::string_view name) {
  std::string known;
  for (const VirtualModeEntry& entry : registry) {
    if (entry.name == name) return entry.mode;
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return Status(Code::invalid_argument,
                fmt::format("mode \"{}\": unknown name; expected one of {}", name, known));
}

Result<std::vector<VirtualOutcome>> simulate_node(std::span<const VirtualRank> ranks,
                                                  const VirtualSettings& settings,
                                                  std::span<const std::vector<double>> loads_s,
                                                  std::vector<VirtualEvent>* events) {
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const Status fine = check(ranks[r], settings);
    if (!fine.ok()) return fine.within(fmt::format("rank {}", r));
  }
  if (settings.n_threads == 0) {
    return Status(Code::invalid_argument, "encode threads: 0, must be at least 1");
  }
  std::vector<VirtualRank> raw;
  if (is_raw(settings.mode)) {
    raw.assign(ranks.begin(), ranks.end());
    for (VirtualRank& rank : raw) make_raw(rank, settings);
    ranks = raw;
  }
  std::vector<VirtualOutcome> outcomes;
  if (settings.mode == VirtualMode::hdf5_filters) {
    for (std::size_t r = 0; r < ranks.size(); ++r) {
      outcomes.push_back(write_by_filters(ranks[r], r, settings, events));
    }
  } else {
    const NodePlan plan = make_plan(ranks, settings, loads_s);
    outcomes = NodeClock(ranks, settings, plan, events).run();
  }
  if (events != nullptr) {
    std::ranges::stable_sort(*events, {}, &VirtualEvent::start_s);
  }
  return outcomes;
}

Result<VirtualOutcome> simulate_rank(const VirtualRank& rank, const VirtualSettings& settings,
                                     std::vector<VirtualEvent>* events) {
  TAILRACE_TAKE(auto outcomes, simulate_node({&rank, 1}, settings, {}, events));
  return outcomes.front();
}

}  // namespace tailrace
