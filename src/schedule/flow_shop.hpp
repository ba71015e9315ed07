// FlowShop: the scheduling problem of in situ output. Chunks are jobs of two operations: encode on
// the main lane, then write on the I/O lane. An operation cannot be interrupted and must not
// overlap an obstacle of its lane. The objective is the earliest end of the last write.
//
// Source: Jin et al. 2024, 3.1-3.3. A two-machine flow shop with deterministic unavailability
// intervals and non-resumable jobs: NP-hard with one interval, not approximable with two. Contains
// the paper's six algorithms, its integer program's checker and bound, and our search.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/trace.hpp"
#include "schedule/order.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Instance of the problem. Times in seconds since the start of the iteration.
struct FlowShop {
  std::vector<JobCost> jobs;
  LaneObstacles obstacles;
  double iteration_s = 0;  ///< T_n: the application's own time; 0: unknown.
};

/// Start time of each job's operations, and the order of each lane.
struct FlowShopPlan {
  std::vector<std::size_t> encode_order;
  std::vector<std::size_t> write_order;
  std::vector<double> encode_start_s;  ///< Indexed by job.
  std::vector<double> write_start_s;   ///< Indexed by job.
  double makespan_s = 0;               ///< End of the last write; 0 without jobs.
};

/// Check an instance: finite times >= 0, obstacles sorted, disjoint, not empty.
/// @error invalid_argument  names the job or obstacle.
Status check_flow_shop(const FlowShop& shop);

/// Check that `plan` is a schedule of `shop`. Every job occurs once. Operations of a lane overlap
/// neither each other nor an obstacle. No write starts before its encode's end, and the makespan is
/// correct. Tolerates `slack_s` of rounding. @error internal  names the operations that collide.
Status check_plan(const FlowShop& shop, const FlowShopPlan& plan, double slack_s = 1e-9);

/// Start every operation as early as possible in the given orders, after the previous ones on its
/// lane. Cost: O(jobs + obstacles).
FlowShopPlan schedule_in_order(const FlowShop& shop, std::span<const std::size_t> encode_order,
                               std::span<const std::size_t> write_order);

/// Lower bound of every schedule's makespan. Not collective. Thread-safe. Cost: O(n log n).
double makespan_lower_bound_s(const FlowShop& shop);

enum class Scheduler : std::uint8_t {
  ext_johnson,
  ext_johnson_bf,
  generation_list,
  generation_list_bf,
  one_list_greedy,
  two_lists_greedy,
  search  ///< Ours: local search from the best of the six.
};

struct SchedulerEntry {
  Scheduler scheduler;
  std::string_view name;     ///< "ext-johnson", "ext-johnson+bf", ..., "search".
  std::string_view summary;  ///< Help text for --help.
};
std::span<const SchedulerEntry> scheduler_registry();
/// Parse a scheduler's name. @error invalid_argument  unknown name; the text lists the known ones.
Result<Scheduler> parse_scheduler(std::string_view name);

/// Budget of a search; other schedulers ignore it. It counts evaluated operations, so that the
/// result does not depend on the machine (pure folder: no clock).
struct SearchBudget {
  std::uint64_t n_evaluated_operations =
      300'000;  ///< Placed operations; at most 5 ms for 500 jobs.
  std::uint64_t seed = 1;
};

/// Schedule an instance, which must pass check_flow_shop(). Deterministic. Not collective.
/// Thread-safe.
/// Cost: O(n log n) ... O(n^4) (two_lists_greedy); search: its budget.
FlowShopPlan schedule_flow_shop(const FlowShop& shop, Scheduler scheduler,
                                const SearchBudget& budget = {});

}  // namespace tailrace
