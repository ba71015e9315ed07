// Checks of the flow shop's instances and plans, schedules in a given order, and the names of the
// schedulers. Each scheduler has its own file.

#include "schedule/flow_shop.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/utf8.hpp"
#include "schedule/flow_shop_schedulers.hpp"
#include "schedule/lane_rule.hpp"

namespace tailrace {

namespace {

constexpr std::array<SchedulerEntry, 7> registry = {{
    {Scheduler::ext_johnson, "ext-johnson", "Johnson's order, each operation as soon as possible"},
    {Scheduler::ext_johnson_bf, "ext-johnson+bf", "Johnson's order, backfilling gaps left before"},
    {Scheduler::generation_list, "generation-list", "the order given"},
    {Scheduler::generation_list_bf, "generation-list+bf", "the order given, backfilling"},
    {Scheduler::one_list_greedy, "one-list-greedy", "each job where it lengthens the plan least"},
    {Scheduler::two_lists_greedy, "two-lists-greedy",
     "like one-list-greedy, but orders encodes and writes separately: O(n^4)"},
    {Scheduler::search, "search", "Tailrace's own: local search from the best of these"},
}};

constexpr std::array<std::string_view, 2> kLaneNames = {"main", "I/O"};

bool is_time(double seconds) { return std::isfinite(seconds) && seconds >= 0; }

Status check_obstacles(std::span<const Obstacle> obstacles, std::string_view lane) {
  double free_s = 0;
  for (std::size_t i = 0; i < obstacles.size(); ++i) {
    const Obstacle& obstacle = obstacles[i];
    const std::string name = std::string(lane) + " obstacle " + std::to_string(i) + ": [" +
                             std::to_string(obstacle.start_s) + ", " +
                             std::to_string(obstacle.end_s) + ") s ";
    if (!is_time(obstacle.start_s) || !is_time(obstacle.end_s)) {
      return Status(Code::invalid_argument, name + "must have finite times >= 0");
    }
    if (!(obstacle.start_s < obstacle.end_s)) {
      return Status(Code::invalid_argument, name + "must end after it starts");
    }
    if (obstacle.start_s < free_s) {
      return Status(Code::invalid_argument, name + "must not start before the previous one ends");
    }
    free_s = obstacle.end_s;
  }
  return {};
}

/// An operation or an obstacle on a lane.
struct Occupied {
  double start_s = 0;
  double end_s = 0;
  std::string_view what;
  std::size_t index = 0;
};

std::string text_of(const Occupied& occupied) {
  return std::string(occupied.what) + " " + std::to_string(occupied.index) + " [" +
         std::to_string(occupied.start_s) + ", " + std::to_string(occupied.end_s) + ") s";
}

/// Reject overlaps on a lane.
Status check_lane(std::vector<Occupied> occupied, std::string_view lane, double slack_s) {
  std::sort(occupied.begin(), occupied.end(), [](const Occupied& a, const Occupied& b) {
    return a.start_s != b.start_s ? a.start_s < b.start_s : a.end_s < b.end_s;
  });
  for (std::size_t i = 1; i < occupied.size(); ++i) {
    if (occupied[i].start_s < occupied[i - 1].end_s - slack_s) {
      return Status(Code::internal, std::string(lane) + " lane: " + text_of(occupied[i - 1]) +
                                        " overlaps " + text_of(occupied[i]));
    }
  }
  return {};
}

/// Reject an order that does not contain every job once, or whose starts are not ascending.
Status check_order(std::span<const std::size_t> order, std::span<const double> start_s,
                   std::string_view what, double slack_s) {
  std::vector<bool> seen(start_s.size());
  if (order.size() != start_s.size()) {
    return Status(Code::internal, std::string(what) + " order: " + std::to_string(order.size()) +
                                      " jobs, must be " + std::to_string(start_s.size()));
  }
  for (std::size_t i = 0; i < order.size(); ++i) {
    if (order[i] >= seen.size() || seen[order[i]]) {
      return Status(Code::internal, std::string(what) + " order: job " + std::to_string(order[i]) +
                                        " at position " + std::to_string(i) +
                                        " is unknown or occurs twice");
    }
    seen[order[i]] = true;
    if (i > 0 && start_s[order[i]] < start_s[order[i - 1]] - slack_s) {
      return Status(Code::internal, std::string(what) + " order: job " + std::to_string(order[i]) +
                                        " starts before job " + std::to_string(order[i - 1]) +
                                        ", but is listed after it");
    }
  }
  return {};
}

}  // namespace

Status check_flow_shop(const FlowShop& shop) {
  for (std::size_t job = 0; job < shop.jobs.size(); ++job) {
    if (!is_time(shop.jobs[job].encode_s) || !is_time(shop.jobs[job].write_s)) {
      return Status(Code::invalid_argument,
                    "job " + std::to_string(job) + ": encode " +
                        std::to_string(shop.jobs[job].encode_s) + " s, write " +
                        std::to_string(shop.jobs[job].write_s) + " s, must be finite and >= 0");
    }
  }
  if (!is_time(shop.iteration_s)) {
    return Status(Code::invalid_argument,
                  "iteration: " + std::to_string(shop.iteration_s) + " s, must be finite and >= 0");
  }
  const Status main = check_obstacles(shop.obstacles.main, kLaneNames[0]);
  return main.ok() ? check_obstacles(shop.obstacles.io, kLaneNames[1]) : main;
}

Status check_plan(const FlowShop& shop, const FlowShopPlan& plan, double slack_s) {
  const std::size_t n = shop.jobs.size();
  if (plan.encode_start_s.size() != n || plan.write_start_s.size() != n) {
    return Status(Code::internal, "plan: " + std::to_string(plan.encode_start_s.size()) +
                                      " encodes and " + std::to_string(plan.write_start_s.size()) +
                                      " writes, must be " + std::to_string(n));
  }
  std::vector<Occupied> main;
  std::vector<Occupied> io;
  double end_s = 0;
  for (std::size_t job = 0; job < n; ++job) {
    const double encode_s = plan.encode_start_s[job];
    const double write_s = plan.write_start_s[job];
    main.push_back({encode_s, encode_s + shop.jobs[job].encode_s, "encode of job", job});
    io.push_back({write_s, write_s + shop.jobs[job].write_s, "write of job", job});
    if (!(encode_s >= 0) || !(write_s >= main.back().end_s - slack_s)) {
      return Status(Code::internal, text_of(io.back()) + " starts before its encode has ended: " +
                                        text_of(main.back()));
    }
    end_s = std::max(end_s, io.back().end_s);
  }
  for (std::size_t i = 0; i < shop.obstacles.main.size(); ++i) {
    main.push_back({shop.obstacles.main[i].start_s, shop.obstacles.main[i].end_s, "obstacle", i});
  }
  for (std::size_t i = 0; i < shop.obstacles.io.size(); ++i) {
    io.push_back({shop.obstacles.io[i].start_s, shop.obstacles.io[i].end_s, "obstacle", i});
  }
  Status checked = check_lane(std::move(main), kLaneNames[0], slack_s);
  if (checked.ok()) checked = check_lane(std::move(io), kLaneNames[1], slack_s);
  if (checked.ok())
    checked = check_order(plan.encode_order, plan.encode_start_s, "encode", slack_s);
  if (checked.ok()) checked = check_order(plan.write_order, plan.write_start_s, "write", slack_s);
  if (checked.ok() && !(std::abs(plan.makespan_s - end_s) <= slack_s)) {
    return Status(Code::internal, "plan: makespan " + std::to_string(plan.makespan_s) +
                                      " s, but the last write ends at " + std::to_string(end_s) +
                                      " s");
  }
  return checked;
}

FlowShopPlan schedule_in_order(const FlowShop& shop, std::span<const std::size_t> encode_order,
                               std::span<const std::size_t> write_order) {
  FlowShopPlan plan;
  plan.encode_order.assign(encode_order.begin(), encode_order.end());
  plan.write_order.assign(write_order.begin(), write_order.end());
  plan.encode_start_s.resize(shop.jobs.size());
  plan.write_start_s.resize(shop.jobs.size());
  LaneCursor main;
  for (const std::size_t job : encode_order) {
    plan.encode_start_s[job] = main.place(shop.obstacles.main, 0, shop.jobs[job].encode_s);
  }
  LaneCursor io;
  for (const std::size_t job : write_order) {
    const double ready_s = plan.encode_start_s[job] + shop.jobs[job].encode_s;
    plan.write_start_s[job] = io.place(shop.obstacles.io, ready_s, shop.jobs[job].write_s);
  }
  plan.makespan_s = io.free_s;
  return plan;
}

std::span<const SchedulerEntry> scheduler_registry() { return registry; }

Result<Scheduler> parse_scheduler(std::string_view name) {
  for (const SchedulerEntry& entry : registry) {
    if (entry.name == name) return entry.scheduler;
  }
  return unknown_name("scheduler", name, registry);
}

FlowShopPlan schedule_flow_shop(const FlowShop& shop, Scheduler scheduler,
                                const SearchBudget& budget) {
  switch (scheduler) {
    case Scheduler::ext_johnson: return schedule_list(shop, johnson_order(shop));
    case Scheduler::ext_johnson_bf: return schedule_list_backfilled(shop, johnson_order(shop));
    case Scheduler::generation_list: return schedule_list(shop, generation_order(shop));
    case Scheduler::generation_list_bf:
      return schedule_list_backfilled(shop, generation_order(shop));
    case Scheduler::one_list_greedy: return schedule_one_list_greedy(shop);
    case Scheduler::two_lists_greedy: return schedule_two_lists_greedy(shop);
    case Scheduler::search: return search_flow_shop(shop, budget);
  }
  return {};
}

// --- Lower bound of the makespan of all schedules.
//
// Each lane is relaxed to the most that its windows (the intervals between obstacles) can hold. A
// window of length L holds k operations only if the k shortest of all fit into it. Let k be the
// largest such number. Then the window holds at most L of work, and at most the sum of the k
// longest operations. A set of windows with k_1, k_2, ... holds at most k_1 + k_2 + ... operations,
// and at most as much work as the longest of that number. The lane is done when all work and all
// operations fit.
//
// The bound combines the lanes at both ends. Let jobs be numbered by the ends of their encodes.
// When the i-th encode ends, n - i + 1 writes have not begun, those of jobs i ... n. (a) All of
// these follow the earliest time at which the lane can complete i encodes. (b) At most i - 1 writes
// can precede it. In (a) the i encodes are at least all without the n - i longest. The remaining
// writes are at least the n - i + 1 shortest. In (b) the i encodes are at least the i shortest, and
// the completed writes at most the i - 1 longest.
//
// Source: capacity of non-resumable windows after Lee 1996 (bounds for machines with availability
// constraints); counting by k shortest is ours.

namespace {

/// Sums of the shortest and of the longest operations of a lane.
class LaneWork {
 public:
  explicit LaneWork(std::vector<double> lengths_s) : shortest_s_{0}, longest_s_{0} {
    std::sort(lengths_s.begin(), lengths_s.end());
    for (std::size_t i = 0; i < lengths_s.size(); ++i) {
      shortest_s_.push_back(shortest_s_.back() + lengths_s[i]);
      longest_s_.push_back(longest_s_.back() + lengths_s[lengths_s.size() - 1 - i]);
    }
  }

  std::size_t n() const { return shortest_s_.size() - 1; }
  double shortest_s(std::size_t k) const { return shortest_s_[k]; }
  double longest_s(std::size_t k) const { return longest_s_[std::min(k, n())]; }

  /// Maximum number of operations in a window of this length.
  std::size_t most_in(double window_s) const {
    const auto above = std::ranges::upper_bound(shortest_s_, window_s + kFitSlackS);
    return static_cast<std::size_t>(above - shortest_s_.begin()) - 1;
  }

 private:
  std::vector<double> shortest_s_;
  std::vector<double> longest_s_;
};

/// Earliest time at which a lane that is free from from_s on can have completed n operations of
/// total length work_s. Cost: O(obstacles log jobs).
double filled_s(std::span<const Obstacle> obstacles, const LaneWork& work, double from_s,
                double work_s, std::size_t n) {
  double free_s = from_s;
  double taken_s = 0;
  std::size_t taken = 0;
  for (const Obstacle& obstacle : obstacles) {
    if (obstacle.end_s <= free_s) continue;
    const double window_s = obstacle.start_s - free_s;
    const std::size_t most = window_s >= -kFitSlackS ? work.most_in(window_s) : 0;
    const double usable_s = std::min(window_s + kFitSlackS, work.longest_s(most));
    // The rest must fit both by work and by count; otherwise continue after the window.
    const double left_s = std::max(work_s - taken_s, 0.0);
    if (taken + most >= n && usable_s >= left_s) {
      return free_s + std::max(left_s, work.shortest_s(n > taken ? n - taken : 0));
    }
    taken += most;
    taken_s = std::min(taken_s + std::max(usable_s, 0.0), work.longest_s(taken));
    free_s = obstacle.end_s;
  }
  const std::size_t rest = n > taken ? n - taken : 0;
  return free_s + std::max(std::max(work_s - taken_s, 0.0), work.shortest_s(rest));
}

}  // namespace

double makespan_lower_bound_s(const FlowShop& shop) {
  const std::size_t n = shop.jobs.size();
  std::vector<double> encodes_s;
  std::vector<double> writes_s;
  for (const JobCost& job : shop.jobs) {
    encodes_s.push_back(job.encode_s);
    writes_s.push_back(job.write_s);
  }
  const LaneWork encodes(std::move(encodes_s));
  const LaneWork writes(std::move(writes_s));
  const double all_encodes_s = encodes.shortest_s(n);
  const double all_writes_s = writes.shortest_s(n);
  double bound_s = 0;
  // Only the ends matter: in the middle the i extreme operations of the two lanes are of other
  // jobs.
  constexpr std::size_t n_ends = 32;
  for (std::size_t i = 1; i <= n; ++i) {
    if (i > n_ends && i + n_ends <= n) continue;
    const double all_but_longest_s = all_encodes_s - encodes.longest_s(n - i);
    const double a_s = filled_s(shop.obstacles.main, encodes, 0, all_but_longest_s, i);
    const double shortest_writes_s = writes.shortest_s(n - i + 1);
    const double tail_s = filled_s(shop.obstacles.io, writes, a_s, shortest_writes_s, n - i + 1);
    const double b_s = filled_s(shop.obstacles.main, encodes, 0, encodes.shortest_s(i), i);
    const double left_s = all_writes_s - writes.longest_s(i - 1);
    const double head_s = filled_s(shop.obstacles.io, writes, b_s, left_s, n - i + 1);
    bound_s = std::max({bound_s, tail_s, head_s});
  }
  // Subtract the rounding errors of the sums, and the slack of operations that extend into
  // obstacles.
  return std::max(bound_s - kFitSlackS * static_cast<double>(n + shop.obstacles.main.size() +
                                                             shop.obstacles.io.size()),
                  0.0);
}

}  // namespace tailrace
