// tailrace simulate: a run, or a figure of the paper, on the virtual clock.
//
// Works on rank 0 alone, with threads of its own: simulated ranks need no MPI.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

#include "exec/lane_clock.hpp"
#include "exec/trace_file.hpp"
#include "simulate_figures.hpp"
#include "simulate_options.hpp"
#include "simulate_plan.hpp"
#include "simulate_report.hpp"

namespace tailrace::cli {
namespace {

struct Outputs {
  ReportFile json;
  ReportFile csv;
  ReportFile trace;
};

Status open_outputs(const SimulateArguments& arguments, Outputs& outputs) {
  const std::string& plot = arguments.plot_path;
  if (!plot.empty() && !plot.ends_with(".png") && !plot.ends_with(".svg")) {
    return Status(Code::invalid_argument, "--plot " + plot + ": must end with .png or .svg");
  }
  if (arguments.figure != 0 && !arguments.trace_path.empty()) {
    return Status(Code::invalid_argument, "--trace: is of a run, not of a --figure");
  }
  TAILRACE_TRY(outputs.json.open(arguments.json_path, true));
  TAILRACE_TRY(outputs.csv.open(arguments.csv_path, true));
  return outputs.trace.open(arguments.trace_path, true);
}

bool prints_tables(const SimulateArguments& arguments, const Outputs& outputs) {
  return !arguments.quiet && !outputs.json.to_stdout() && !outputs.csv.to_stdout() &&
         !outputs.trace.to_stdout();
}

Status make_figure(const SimulateArguments& arguments, const SimulatePlan& plan, Outputs& outputs) {
  const Result<PaperFigure> figure = compute_figure(arguments.figure, plan);
  if (!figure.ok()) return figure.status();
  if (prints_tables(arguments, outputs)) fmt::print("{}", figure_table(*figure));
  if (outputs.json.wanted()) TAILRACE_TRY(outputs.json.finish(json_text(figure_json(*figure))));
  if (outputs.csv.wanted()) TAILRACE_TRY(outputs.csv.finish(figure_csv(*figure)));
  if (arguments.plot_path.empty()) return Status();
  return chart::write_figure(figure_chart(*figure), arguments.plot_path).within("--plot");
}

Status make_run(const SimulateArguments& arguments, SimulatePlan plan, Outputs& outputs) {
  const bool in_situ =
      std::count(plan.run.modes.begin(), plan.run.modes.end(), VirtualMode::in_situ) > 0;
  if (outputs.trace.wanted() && !in_situ) {
    return Status(Code::invalid_argument, "--trace: needs mode in-situ among --modes");
  }
  if (outputs.trace.wanted() || (!arguments.plot_path.empty() && in_situ)) {
    plan.run.n_traced_ranks = std::max<std::size_t>(arguments.trace_ranks, 1);
  }
  const LaneClock clock;
  const Result<VirtualRunResult> result = run_plan(plan);
  if (!result.ok()) return result.status();
  if (prints_tables(arguments, outputs)) {
    fmt::print("{}\n{}", simulate_heading(plan, clock.now_s()), simulate_table(plan, *result));
  }
  if (outputs.json.wanted()) {
    TAILRACE_TRY(outputs.json.finish(json_text(simulate_json(plan, *result))));
  }
  if (outputs.csv.wanted()) TAILRACE_TRY(outputs.csv.finish(simulate_csv(plan, *result)));
  if (outputs.trace.wanted()) {
    const std::vector<TraceEvent> trace = simulate_trace(*result);
    TAILRACE_TRY(outputs.trace.finish(trace_json(trace, {})));
  }
  if (arguments.plot_path.empty()) return Status();
  return chart::write_figure(simulate_chart(plan, *result), arguments.plot_path).within("--plot");
}

Status simulate(const SimulateArguments& arguments) {
  const Result<SimulatePlan> plan = understand_simulate(arguments);
  if (!plan.ok()) return plan.status();
  Outputs outputs;
  TAILRACE_TRY(open_outputs(arguments, outputs));
  return arguments.figure != 0 ? make_figure(arguments, *plan, outputs)
                               : make_run(arguments, *plan, outputs);
}

}  // namespace

int run_simulate(Session& session, const SimulateArguments& arguments) {
  const Status status = session.settle(session.speaks() ? simulate(arguments) : Status());
  return status.ok() ? exit_done : session.fail(status);
}

}  // namespace tailrace::cli
