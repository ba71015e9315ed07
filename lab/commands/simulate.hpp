// Interface between the files of `tailrace-lab simulate`: arguments; the workload and settings that
// they specify; the output of a run as a table, JSON, CSV, a chart and a trace, all labelled
// "simulated"; figures of the paper (Jin et al. 2024) that can be simulated.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "chart/chart.hpp"
#include "cli_common.hpp"
#include "core/trace.hpp"
#include "model/machine_profile.hpp"
#include "simulate/recorded_workload.hpp"
#include "simulate/simulate_run.hpp"
#include "simulate/simulate_workload.hpp"

namespace tailrace::cli {

struct SimulateArguments {
  std::string application = "nyx";
  std::string recording;           ///< Replaces the application; empty: none.
  std::size_t n_ranks = 0;         ///< 0: 64, or that of the recording.
  std::size_t ranks_per_node = 0;  ///< 0: 4, or that of the recording.
  std::size_t n_iterations = 0;    ///< 0: 10, or that of the recording.

  /// Changes to the application and to its noise that the user requested.
  std::vector<std::function<void(VirtualApplication&)>> application_setters;
  std::vector<std::function<void(VirtualNoise&)>> noise_setters;
  std::string field_bytes;
  std::string chunk_bytes;

  std::string bandwidth;        ///< Bandwidth of a rank.
  std::string total_bandwidth;  ///< Bandwidth of all ranks together.
  std::string profile;
  std::string codec = "trz";
  std::string encode;  ///< Raw bytes per second; empty: from the profile.

  std::string modes = "all";
  std::string scheduler = "auto";
  std::uint64_t search_operations = 400'000;
  std::string balance = "best";
  std::string buffer = "16MiB";
  std::string memory;  ///< Empty: no cap.
  std::string hold = "promise";
  std::size_t encode_threads = 1;
  std::string forecast = "given";
  std::optional<double> margin;  ///< Nothing: 1; for recordings lane_margin_deviations.
  std::string io_collisions;     ///< wait, share; empty: wait, but share for recordings.
  bool shift_forecast = false;
  std::string step_costs;  ///< "on", "off"; empty: on, but off for recordings and figures.
  std::string metadata = "beside";

  bool no_noise = false;
  bool unsynchronized = false;
  std::uint64_t seed = 1;
  std::uint64_t n_threads = 0;  ///< Threads of the simulator; 0: one per core.

  unsigned figure = 0;  ///< Figure of the paper: 3, 7, 8, 11; 0: a run.
  std::string trace_path;
  std::size_t trace_ranks = 4;
  std::string plot_path;
  std::string csv_path;
  std::string json_path;
  bool quiet = false;
};

/// Settings of a run that can be varied: figures change one member and run again.
struct SimulatePlan {
  VirtualApplication application;
  std::shared_ptr<const Recording> recording;  ///< Replaces the application; may be null.
  std::size_t n_ranks = 64;
  std::size_t ranks_per_node = 4;
  std::size_t n_iterations = 10;
  VirtualStorySettings story;  ///< Write costs come from storage_of().
  VirtualRunSettings run;
  bool scheduler_is_auto = true;

  MachineProfile profile;
  std::string profile_name;
  double bandwidth = 0;          ///< Bytes per second of a rank; 0: from the profile.
  double total_bandwidth = 0;    ///< Bytes per second of all ranks together; 0: no limit.
  bool recorded_writes = false;  ///< Writes take as long as in the recording.
  std::string encode_text;       ///< "trz of the built-in profile", "300 MB/s".
};

/// Interpret the arguments, and read the files that they name.
/// @error invalid_argument, not_found, corrupt  name the option or file.
Result<SimulatePlan> understand_simulate(const SimulateArguments& arguments);

/// Complete what depends on the number of ranks (storage, scheduler), and run.
Result<VirtualRunResult> run_plan(SimulatePlan plan);

/// Scheduler that run_plan() uses.
Scheduler scheduler_of(const SimulatePlan& plan);
/// "25 MB/s a rank", "rooflines of machine.json, 100 MB/s a rank for writes of 16 MiB".
std::string storage_text(const SimulatePlan& plan);
/// "9 fields of 64 MiB a rank in chunks of 8 MiB, ..."
std::string workload_text(const SimulatePlan& plan);

/// Mean and deviation of a mode's overhead over its iterations, relative to the computation.
struct OverheadSpread {
  double mean = 0;  ///< Mean over the complete run.
  double deviation = 0;
  double least = 0;
  double greatest = 0;
};
OverheadSpread overhead_spread(const VirtualModeResult& mode);

/// Description of the simulation in sentences; `wall_s` is the run time of the simulator.
std::string simulate_heading(const SimulatePlan& plan, double wall_s);
std::string simulate_table(const SimulatePlan& plan, const VirtualRunResult& result);
/// Costs of a step other than encoding and writing, by mode; "" if the plan has no step costs.
std::string step_table(const SimulatePlan& plan, const VirtualRunResult& result);
nlohmann::ordered_json simulate_json(const SimulatePlan& plan, const VirtualRunResult& result);
/// Settings of the simulation as JSON, for runs and figures.
nlohmann::ordered_json simulate_settings_json(const SimulatePlan& plan);
std::string simulate_csv(const SimulatePlan& plan, const VirtualRunResult& result);
/// Overheads by mode, and the traced ranks' last iteration as a Gantt chart.
chart::Figure simulate_chart(const SimulatePlan& plan, const VirtualRunResult& result);
std::vector<TraceEvent> simulate_trace(const VirtualRunResult& result);

// --- figures 3, 7, 8 and 11: series of numbers that can be drawn, printed, and written as CSV or
// JSON. Only overheads and improvements are computed; no number comes from the paper.

struct FigureSeries {
  std::string label;
  std::vector<double> x;
  std::vector<double> y;          ///< Percent.
  std::vector<double> deviation;  ///< Standard deviation over iterations, percent.
  bool dashed = false;
};

struct FigurePanel {
  std::string title;
  std::string x_label;
  std::string y_label;
  bool x_logarithmic = false;
  bool y_logarithmic = false;
  std::vector<FigureSeries> series;
};

struct PaperFigure {
  unsigned number = 0;
  std::string title;
  std::vector<FigurePanel> panels;
  std::vector<std::string> settings;  ///< Settings of each panel, like simulate_heading().
};

/// Compute figure 3, 7, 8 or 11, varying `plan`. Values that `plan` leaves at their defaults are
/// chosen for the figure. @error invalid_argument  another number, or a recording.
Result<PaperFigure> compute_figure(unsigned number, const SimulatePlan& plan);

std::string figure_table(const PaperFigure& figure);
std::string figure_csv(const PaperFigure& figure);
nlohmann::ordered_json figure_json(const PaperFigure& figure);
chart::Figure figure_chart(const PaperFigure& figure);

}  // namespace tailrace::cli
