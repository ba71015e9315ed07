// FlowShop: the scheduling problem of in situ output. Chunks are jobs of two operations, encode on
// the main lane and then write on the I/O lane; neither may overlap an obstacle of its lane, nor be
// interrupted; the last write is to end as early as possible.
//
// Source: Jin et al. 2024, 3.1-3.3. A two-machine flow shop with deterministic unavailability
// intervals and non-resumable jobs: NP-hard with one interval, not approximable with two. The
// paper's six algorithms, its integer program's checker and bound, and our own search.

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

/// An instance. Times in seconds since the iteration began.
struct FlowShop {
  std::vector<JobCost> jobs;
  LaneObstacles obstacles;
  double iteration_s = 0;  ///< T_n: the application's own time; 0: not known.
};

/// When each job's operations start. The orders are those in which the lanes work.
struct FlowShopPlan {
  std::vector<std::size_t> encode_order;
  std::vector<std::size_t> write_order;
  std::vector<double> encode_start_s;  ///< By job.
  std::vector<double> write_start_s;   ///< By job.
  double makespan_s = 0;               ///< End of the last write; 0 without jobs.
};

/// Check an instance: finite times >= 0, obstacles sorted, disjoint, not empty.
/// @error invalid_argument  names the job or obstacle.
Status check_flow_shop(const FlowShop& shop);

/// Check that `plan` is a schedule of `shop`: every job once, no two operations of a lane at once,
/// none on an obstacle, no write before its encode's end, makespan as stated. Up to `slack_s` of
/// rounding. @error internal  names the operations that collide.
Status check_plan(const FlowShop& shop, const FlowShopPlan& plan, double slack_s = 1e-9);

/// Start every operation as soon as possible in the orders given, behind those before it on its
/// lane. Cost: O(jobs + obstacles).
FlowShopPlan schedule_in_order(const FlowShop& shop, std::span<const std::size_t> encode_order,
                               std::span<const std::size_t> write_order);

/// No schedule ends before this. Not collective. Thread-safe. Cost: O(n log n).
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
  std::string_view summary;  ///< For --help.
};
std::span<const SchedulerEntry> scheduler_registry();
/// @error invalid_argument  no scheduler of this name; lists those there are.
Result<Scheduler> parse_scheduler(std::string_view name);

/// How long a search may go on; the others take no notice. A count of evaluated schedules, so that
/// the answer does not depend on the machine (pure folder: no clock).
struct SearchBudget {
  std::uint64_t n_evaluated_operations =
      300'000;  ///< Operations placed; 5 ms at most for 500 jobs.
  std::uint64_t seed = 1;
};

/// Schedule an instance. Deterministic. Not collective. Thread-safe.
/// Cost: O(n log n) ... O(n^4) (two_lists_greedy); search: its budget.
/// The instance must pass check_flow_shop.
FlowShopPlan schedule_flow_shop(const FlowShop& shop, Scheduler scheduler,
                                const SearchBudget& budget = {});

}  // namespace tailrace
