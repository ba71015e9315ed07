// What `tailrace schedule` tells of the plans it made: a table, JSON, and Gantt charts like figure
// 1 of Jin et al. 2024.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chart/chart.hpp"
#include "schedule_instance_file.hpp"

namespace tailrace::cli {

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
