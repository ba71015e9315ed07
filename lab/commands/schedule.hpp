// What the files of `tailrace-lab schedule` know of each other: instances of the flow shop, as JSON
// files; exact solvers; the plans that were made, as a table, JSON, and Gantt charts like figure 1
// of Jin et al. 2024.
//
//   {"iteration_s": 4,
//    "jobs": [{"name": "rho #0", "encode_s": 0.031, "write_s": 0.012}, ...],
//    "obstacles": {"main": [[0.3, 0.7], ...], "io": [[0, 0.1], ...]}}
//
// "name" and "iteration_s" are optional, and so are lanes without obstacles. A key that nobody
// knows is an error, since it is more likely misspelt than meant for somebody else.
//
// Exact schedules come from solvers that run as a child process: HiGHS for the integer program of
// Jin et al. 2024 (figure 12), CP-SAT for a constraint model. Why not linked:
// docs/adr/exact-solvers-by-child-process.md. The child gets the instance as JSON and answers with
// two orders and a bound. The plan is made here, in our own arithmetic, and checked like every
// other.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "chart/chart.hpp"
#include "schedule/flow_shop.hpp"
#include "trz/base/status.hpp"

namespace tailrace::cli {

/// An instance and what its jobs are called.
struct ScheduleInstance {
  FlowShop shop;
  std::vector<std::string> names{};  ///< By job; empty, or "" for a job: its number from 1 on.

  /// The job's name, as charts and messages say it.
  std::string name_of(std::size_t job) const;
};

/// Parse an instance; it passes check_flow_shop. Not collective. Thread-safe.
/// @error invalid_argument  names the key ("jobs[3].encode_s"), what was expected and what came.
Result<ScheduleInstance> parse_schedule_instance(std::string_view text);

/// The same from the file at `path`; "-" is standard input. @error not_found, invalid_argument
Result<ScheduleInstance> read_schedule_instance(const std::string& path);

/// The instance as JSON, which parse_schedule_instance() reads back digit by digit.
nlohmann::ordered_json schedule_instance_json(const ScheduleInstance& instance);

struct ExactRequest {
  std::string solver;                  ///< "ilp" or "cp-sat".
  double time_limit_s = 60;            ///< After which the best plan so far is the answer.
  std::size_t n_workers = 0;           ///< Threads; 0: as the solver likes.
  double lower_bound_s = 0;            ///< Known already.
  const FlowShopPlan* hint = nullptr;  ///< A plan to start from; nullptr: none.
};

struct ExactOutcome {
  std::optional<FlowShopPlan> plan;  ///< Nothing: none was found in time.
  double lower_bound_s = 0;          ///< Proven by the solver.
  bool proven = false;               ///< The solver says that nothing is better.
  std::string solver;                ///< With its version.
  double solve_s = 0;                ///< Building the model and solving it; wall time.
};

/// Run a solver to its end or its time limit. TAILRACE_PYTHON names the interpreter, else python3.
/// Not collective. Blocks. @error plugin_missing  no interpreter, no script or no solver: says
/// what to install. @error internal  the child failed, with its last line, or overran its limit.
Result<ExactOutcome> schedule_exactly(const FlowShop& shop, const ExactRequest& request);

/// One scheduler's plan, checked.
struct CheckedPlan {
  std::string scheduler;
  std::optional<FlowShopPlan> plan;  ///< Nothing: an exact solver that found none in time.
  double plan_s = 0;          ///< Processor time of the thread; of an exact solver wall time.
  std::string problem;        ///< What check_plan() says against it; empty: the plan is valid.
  std::string solver;         ///< An exact solver's name and version; else empty.
  double solver_bound_s = 0;  ///< What the exact solver has proven.
};

struct ScheduleReport {
  std::string source;  ///< The file, or how the instance was drawn.
  ScheduleInstance instance;
  double lower_bound_s = 0;       ///< makespan_lower_bound_s().
  double best_bound_s = 0;        ///< The greatest bound known, solvers' proofs included.
  std::string best_bound_source;  ///< "lower bound", or the solver.
  std::vector<CheckedPlan> plans;

  /// How far a makespan lies above the best bound, as a share of it; 0 where the bound is 0.
  double gap(double makespan_s) const;
  /// Whether nothing can be better, up to rounding.
  bool optimal(double makespan_s) const;
};

/// The lines above the table, the table, and what is wrong with plans, if anything.
std::string schedule_table(const ScheduleReport& report);
/// All of it; docs/cli.md explains the keys.
nlohmann::ordered_json schedule_json(const ScheduleReport& report);
/// The obstacles, the jobs (while they can be told apart), and each plan on both lanes.
chart::Figure schedule_figure(const ScheduleReport& report);

}  // namespace tailrace::cli
