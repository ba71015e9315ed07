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

constexpr std::array<VirtualModeEntry, 5> registry = {{
    {VirtualMode::sync_raw, "sync-raw",
     "written after the iteration, not compressed: the baseline"},
    {VirtualMode::sync_encoded, "sync-encoded", "encoded and written after the iteration"},
    {VirtualMode::async_raw, "async-raw", "written in the background, not compressed"},
    {VirtualMode::async_encoded, "async-encoded",
     "encoded on cores of their own, written in the background"},
    {VirtualMode::in_situ, "in-situ", "encoded and written in idle time, by a plan"},
}};

bool is_raw(VirtualMode mode) {
  return mode == VirtualMode::sync_raw || mode == VirtualMode::async_raw;
}

/// The order in which jobs lie.
std::vector<std::size_t> given_order(std::size_t n_jobs) {
  std::vector<std::size_t> order(n_jobs);
  std::iota(order.begin(), order.end(), std::size_t{0});
  return order;
}

Status check(const VirtualRank& rank, const VirtualSettings& settings) {
  const std::size_t n_jobs = rank.actual.jobs.size();
  if (rank.forecast.jobs.size() != n_jobs) {
    return Status(Code::invalid_argument,
                  fmt::format("{} jobs were forecast, {} came", rank.forecast.jobs.size(), n_jobs));
  }
  for (const auto* bytes : {&rank.raw_bytes, &rank.encoded_bytes}) {
    if (bytes->size() == n_jobs || (bytes->empty() && !is_raw(settings.mode))) continue;
    return Status(Code::invalid_argument,
                  fmt::format("bytes of {} jobs, there are {}", bytes->size(), n_jobs));
  }
  if (rank.raw_bytes.size() != rank.encoded_bytes.size()) {
    return Status(Code::invalid_argument, "jobs have raw bytes, but no encoded ones, or reverse");
  }
  TAILRACE_TRY(check_flow_shop(rank.forecast).within("forecast"));
  TAILRACE_TRY(check_flow_shop(rank.actual).within("actual"));
  if (settings.memory_bytes == 0 || is_raw(settings.mode)) return Status();
  for (const std::uint64_t bytes : rank.raw_bytes) {
    const std::uint64_t needed = settings.hold_copy ? 2 * bytes : bytes;
    if (needed <= settings.memory_bytes) continue;
    return Status(Code::invalid_argument,
                  fmt::format("a chunk needs {} bytes to be encoded, the cap on memory is {}",
                              needed, settings.memory_bytes));
  }
  return Status();
}

/// The same iteration with chunks that are written as they are. What a write of the encoded chunk
/// took beyond what was expected, the raw one's takes in proportion.
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
    // The forecast's size differs from the actual one: only the expected time of the bytes counts.
    const auto raw = static_cast<double>(rank.raw_bytes[job]);
    rank.forecast.jobs[job] = {
        0, settings.write_s ? settings.write_s(raw) : raw_s(rank.forecast.jobs[job], job)};
  }
  rank.encoded_bytes = rank.raw_bytes;
}

/// Move writes between ranks (3.4). Those that come from others are written last.
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
                fmt::format("mode \"{}\": there is none of this name; there are {}", name, known));
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
  const NodePlan plan = make_plan(ranks, settings, loads_s);
  std::vector<VirtualOutcome> outcomes = NodeClock(ranks, settings, plan, events).run();
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
