// Interface between the files of `tailrace-lab schedule`: instances of the flow shop, as JSON
// files; exact solvers; plans, as a table, JSON, and Gantt charts like figure 1 of Jin et al. 2024.
//
//   {"iteration_s": 4,
//    "jobs": [{"name": "rho #0", "encode_s": 0.031, "write_s": 0.012}, ...],
//    "obstacles": {"main": [[0.3, 0.7], ...], "io": [[0, 0.1], ...]}}
//
// "name" and "iteration_s" are optional, and so are lanes without obstacles. An unknown key is an
// error, because it is most likely misspelt.
//
// Exact schedules come from solvers that run as a child process: HiGHS for the integer program of
// Jin et al. 2024 (figure 12), CP-SAT for a constraint model. The reasons for not linking them are
// in docs/adr/0012-exact-solvers-by-child-process.md. The child receives the instance as JSON and
// returns two orders and a bound. The plan is built here, in our own arithmetic, and checked like
// any other.

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

/// Instance of the flow shop, with the names of its jobs.
struct ScheduleInstance {
  FlowShop shop;
  std::vector<std::string> names{};  ///< Indexed by job; empty, or "" for a job: its number.

  /// Name of the job in charts and messages.
  std::string name_of(std::size_t job) const;
};

/// Parse an instance and check it by check_flow_shop(). Not collective. Thread-safe.
/// @error invalid_argument  names the key ("jobs[3].encode_s"), what was expected and what was
/// found.
Result<ScheduleInstance> parse_schedule_instance(std::string_view text);

/// Parse the file at `path`; "-" is standard input. @error not_found, invalid_argument
Result<ScheduleInstance> read_schedule_instance(const std::string& path);

/// The instance as JSON, which parse_schedule_instance() reads back without loss of digits.
nlohmann::ordered_json schedule_instance_json(const ScheduleInstance& instance);

struct ExactRequest {
  std::string solver;                  ///< "ilp" or "cp-sat".
  double time_limit_s = 60;            ///< The best plan found until then is returned.
  std::size_t n_workers = 0;           ///< Threads; 0: the solver's choice.
  double lower_bound_s = 0;            ///< Lower bound that is known already.
  const FlowShopPlan* hint = nullptr;  ///< A plan to start from; nullptr: none.
};

struct ExactOutcome {
  std::optional<FlowShopPlan> plan;  ///< Nothing: the solver found no plan in time.
  double lower_bound_s = 0;          ///< Proven by the solver.
  bool proven = false;               ///< The solver has proven that no plan is better.
  std::string solver;                ///< Name and version.
  double solve_s = 0;                ///< Wall time to build the model and solve it.
};

/// Run a solver to its end or its time limit. TAILRACE_PYTHON names the interpreter; default
/// python3. Not collective. Blocks.
/// @error plugin_missing  the interpreter, the script or the solver is missing; says what to
/// install.
/// @error internal  the child failed (with its last line) or overran its limit.
Result<ExactOutcome> schedule_exactly(const FlowShop& shop, const ExactRequest& request);

/// Plan of one scheduler, with the result of its check.
struct CheckedPlan {
  std::string scheduler;
  std::optional<FlowShopPlan> plan;  ///< Nothing: an exact solver found no plan in time.
  double plan_s = 0;                 ///< CPU time of the thread; of an exact solver wall time.
  std::string problem;               ///< Objection of check_plan(); empty: the plan is valid.
  std::string solver;                ///< An exact solver's name and version; else empty.
  double solver_bound_s = 0;         ///< Bound that the exact solver has proven.
};

struct ScheduleReport {
  std::string source;  ///< The file, or the parameters of a random instance.
  ScheduleInstance instance;
  double lower_bound_s = 0;       ///< makespan_lower_bound_s().
  double best_bound_s = 0;        ///< Greatest known bound, including the solvers' proofs.
  std::string best_bound_source;  ///< "lower bound", or the solver.
  std::vector<CheckedPlan> plans;

  /// Distance of a makespan above the best bound, as a share of the bound; 0 if the bound is 0.
  double gap(double makespan_s) const;
  /// True if no plan can be shorter, up to rounding.
  bool optimal(double makespan_s) const;
};

/// Heading, table of plans, and objections to invalid plans.
std::string schedule_table(const ScheduleReport& report);
/// Complete report; docs/cli.md explains the keys.
nlohmann::ordered_json schedule_json(const ScheduleReport& report);
/// Panels of the obstacles, of the jobs (if they are few enough to distinguish), and of each plan.
chart::Figure schedule_figure(const ScheduleReport& report);

}  // namespace tailrace::cli
