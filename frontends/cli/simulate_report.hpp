// What a simulated run is shown as: a table, JSON, CSV, a chart and a trace. All say "simulated".

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "chart/chart.hpp"
#include "core/trace.hpp"
#include "simulate/simulate_run.hpp"
#include "simulate_plan.hpp"

namespace tailrace::cli {

/// Mean and deviation of a mode's overhead over its iterations, relative to the computation.
struct OverheadSpread {
  double mean = 0;  ///< Of the whole run.
  double deviation = 0;
  double least = 0;
  double greatest = 0;
};
OverheadSpread overhead_spread(const VirtualModeResult& mode);

/// What was simulated, as sentences; `wall_s` is what it took.
std::string simulate_heading(const SimulatePlan& plan, double wall_s);
std::string simulate_table(const SimulatePlan& plan, const VirtualRunResult& result);
nlohmann::ordered_json simulate_json(const SimulatePlan& plan, const VirtualRunResult& result);
/// What was simulated, as JSON; of runs and of figures.
nlohmann::ordered_json simulate_settings_json(const SimulatePlan& plan);
std::string simulate_csv(const SimulatePlan& plan, const VirtualRunResult& result);
/// Overheads by mode, and the traced ranks' last iteration as a Gantt chart.
chart::Figure simulate_chart(const SimulatePlan& plan, const VirtualRunResult& result);
std::vector<TraceEvent> simulate_trace(const VirtualRunResult& result);

}  // namespace tailrace::cli
