// tailrace-lab simulate: a run, or a figure of the paper, on the virtual clock.
//
// Works on rank 0 only, with several threads: simulated ranks need no MPI.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>

#include "exec/lane_clock.hpp"
#include "exec/trace_file.hpp"
#include "lab_commands.hpp"
#include "simulate.hpp"

namespace tailrace::cli {
namespace {

constexpr const char* kSimulateDescription =
    R"help(Simulate output during an application's iterations, on any number of ranks

Examples:
  tailrace-lab simulate --ranks 512 --bandwidth 25MB/s
      a Nyx-like application on storage of 25 MB/s per rank: compare all output modes
  tailrace-lab simulate --recording run.json --bandwidth 100MB/s --plot run.svg
      recorded iterations on other storage
  tailrace-lab simulate --application warpx --ranks 32768 --profile machine.json
      with the rooflines of a measured machine
  tailrace-lab simulate --figure 8 --plot figure_8.svg --csv figure_8.csv
      a figure of the paper (Jin et al. 2024): 3, 7, 8 or 11
)help";

constexpr const char* kSimulateFooter =
    R"help(Virtual time, real decisions: plans, the rule of the lanes, balancing and forecasts are
those of mode=in_situ; the application and how long operations take are simulated. Overheads are
relative to the computation alone. lab/simulate/README.md says what is modelled, what is not, and
what a recording looks like.)help";

std::string application_help() {
  std::string text = "Generated application. Default nyx.";
  for (const VirtualApplication& known : virtual_applications()) {
    text += fmt::format("\n  {}: {} fields of {} MiB a rank, iterations of {} s, mean ratio {}",
                        known.name, known.n_fields, known.field_bytes >> 20, known.iteration_s,
                        known.mean_ratio);
  }
  return text;
}

void add_application(CLI::App* sub, SimulateArguments& simulate) {
  const Group what(sub, "What runs");
  what("--application", simulate.application, "NAME", application_help());
  what("--recording", simulate.recording, "FILE",
       "Replay recorded iterations instead (JSON, lab/simulate/README.md). Further ranks and "
       "iterations repeat the recorded ones from the first.");
  what("--ranks", simulate.n_ranks, "N", "Number of ranks. Default 64, or as recorded.");
  what("--ranks-per-node", simulate.ranks_per_node, "N",
       "Ranks per node. Default 4, or as recorded.");
  what("--iterations", simulate.n_iterations, "N",
       "Number of iterations. Default 10, or as recorded.");
  what("--seed", simulate.seed, "N", "Seed of all random draws. Default 1.");

  const Group shape(sub, "The application, where it differs from the one named");
  auto& setters = simulate.application_setters;
  shape.later("--iteration-time", setters, &VirtualApplication::iteration_s, "SECONDS",
              "Duration of an iteration without output.");
  shape.later("--main-busy", setters, &VirtualApplication::main_busy_share, "SHARE",
              "Share of an iteration in which the application needs the main lane. Default 0.5.");
  shape.later("--io-busy", setters, &VirtualApplication::io_busy_share, "SHARE",
              "Share of an iteration in which the application needs the I/O lane. Default 0.25.");
  shape.later("--main-obstacles", setters, &VirtualApplication::n_main_obstacles, "N",
              "Number of intervals in which the main lane is busy. Default 10.");
  shape.later("--io-obstacles", setters, &VirtualApplication::n_io_obstacles, "N",
              "Number of intervals in which the I/O lane is busy. Default 8.");
  shape.later("--fields", setters, &VirtualApplication::n_fields, "N", "Fields per rank.");
  shape("--field-bytes", simulate.field_bytes, "SIZE", "Bytes of one field on one rank.");
  shape("--chunk", simulate.chunk_bytes, "SIZE", "Largest chunk. Default 8MiB.");
  shape.later("--ratio", setters, &VirtualApplication::mean_ratio, "RATIO",
              "Mean compression ratio of all chunks.");
  shape.later("--ratio-difference", setters, &VirtualApplication::ratio_difference, "RATIO",
              "Difference between the largest and the least mean ratio of the ranks of a node.");
  shape.later("--ratio-spread", setters, &VirtualApplication::chunk_spread, "SIGMA",
              "Standard deviation of the logarithm of ratios within a rank. Default 0.3; 0 for "
              "uniform.");
}

void add_costs(CLI::App* sub, SimulateArguments& simulate) {
  const Group costs(sub, "How long operations take");
  costs("--bandwidth", simulate.bandwidth, "SIZE/s",
        "Storage bandwidth per rank, for writes of any size. Default: from --profile, or from the "
        "recording.");
  costs("--total-bandwidth", simulate.total_bandwidth, "SIZE/s",
        "Limit of the bandwidth of all ranks together (with --bandwidth). Default: none.");
  costs("--profile", simulate.profile, "FILE",
        "Machine profile: rooflines of storage, throughput of codecs. Default: TAILRACE_PROFILE, "
        "else typical values.");
  costs("--codec", simulate.codec, "CODEC", "A codec of the profile. Default trz.");
  costs("--encode", simulate.encode, "SIZE/s",
        "Encode throughput of a core in raw bytes. Default: the curve of the profile.");
  costs.later("--noise-obstacles", simulate.noise_setters, &VirtualNoise::obstacles, "SIGMA",
              "Noise of the starts and ends of obstacles, as a share of the iteration. Default "
              "0.01; recordings 0.");
  costs.later("--noise-ratio", simulate.noise_setters, &VirtualNoise::ratio, "SIGMA",
              "Noise of the ratio of a chunk against its forecast. Default 0.1; recordings 0.");
  costs.later("--noise-encode", simulate.noise_setters, &VirtualNoise::encode, "SIGMA",
              "Noise of encode throughput. Default 0.05; recordings 0.");
  costs.later("--noise-write", simulate.noise_setters, &VirtualNoise::write, "SIGMA",
              "Noise of I/O throughput. Default 0.05; recordings 0.");
  costs("--step-costs", simulate.step_costs, "on|off",
        "Include the fixed costs of a step from --profile: messages between ranks, index and "
        "commit on rank 0, copies, claims. off: none, as in the paper. Default on; recordings and "
        "figures off.");
  costs.flag("--no-noise", simulate.no_noise, "Set all noise to 0.");
}

void add_output(CLI::App* sub, SimulateArguments& simulate) {
  const Group output(sub, "How output is done");
  output("--modes", simulate.modes, "LIST",
         help_of("Output modes to compare, separated by commas. Default all.",
                 virtual_mode_registry()));
  output("--scheduler", simulate.scheduler, "NAME",
         "Planner of mode in-situ (see tailrace-lab schedule). Default auto: search up to 4096 "
         "plans, else ext-johnson+bf.");
  output("--search-operations", simulate.search_operations, "N",
         "Budget of the scheduler search. Default 400000, about 4 ms; the product's is 2000000.");
  output("--balance", simulate.balance, "RULE",
         "Rule that balances writes within a node: off, paper, best. Default best.");
  output("--buffer", simulate.buffer, "SIZE", "Largest single write. Default 16MiB.");
  output("--memory", simulate.memory, "SIZE", "Memory limit of a rank. Default: none.");
  output("--hold", simulate.hold, "copy|promise",
         "copy: values count against --memory until they are encoded. Default promise.");
  output("--encode-threads", simulate.encode_threads, "N",
         "Encode threads in modes sync-encoded and async-encoded. Default 1.");
  output("--forecast", simulate.forecast, "given|learned",
         "Forecast of obstacles. given: known except for the noise. learned: from earlier "
         "iterations, as in the library. Default given; recordings are always learned.");
  output("--margin", simulate.margin, "SIGMAS",
         "Standard deviations of an obstacle's start that lanes keep free before it. Default 1; "
         "recordings 2, as in the product, but at most a chunk's encoding.");
  output("--io-collisions", simulate.io_collisions, "wait|share",
         "Rule for an obstacle of the I/O lane that begins during a write. wait: it waits until "
         "the write has ended, as in the paper. share: both continue, as in the library. Default "
         "wait; recordings share.");
  output("--metadata", simulate.metadata, "beside|within",
         "Where rank 0 writes the metadata of an asynchronous step. beside: in a thread, while the "
         "application computes. within: in end_step, while all ranks wait (as without a "
         "thread-safe HDF5). Default beside.");
  output.flag("--shift-forecast", simulate.shift_forecast,
              "Shift the forecast of later obstacles by the time that the application has waited "
              "for output. Default: off.");
  output.flag("--unsynchronized", simulate.unsynchronized,
              "Let ranks run independently. Default: an iteration begins when the slowest rank has "
              "ended the previous one, as with collectives.");
}

struct Outputs {
  ReportFile json;
  ReportFile csv;
  ReportFile trace;
};

Status open_outputs(const SimulateArguments& arguments, Outputs& outputs) {
  TAILRACE_TRY(check_plot_path(arguments.plot_path));
  if (arguments.figure != 0 && !arguments.trace_path.empty()) {
    return Status(Code::invalid_argument,
                  "--trace: applies to a run and cannot be combined with --figure");
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
  TAILRACE_TAKE(const PaperFigure figure, compute_figure(arguments.figure, plan));
  if (prints_tables(arguments, outputs)) print_text(figure_table(figure));
  if (outputs.json.wanted()) TAILRACE_TRY(outputs.json.finish(json_text(figure_json(figure))));
  if (outputs.csv.wanted()) TAILRACE_TRY(outputs.csv.finish(figure_csv(figure)));
  if (arguments.plot_path.empty()) return Status();
  return chart::write_figure(figure_chart(figure), arguments.plot_path).within("--plot");
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
  TAILRACE_TAKE(const VirtualRunResult result, run_plan(plan));
  if (prints_tables(arguments, outputs)) {
    print_text(fmt::format("{}\n{}{}", simulate_heading(plan, clock.now_s()),
                           simulate_table(plan, result), step_table(plan, result)));
  }
  if (outputs.json.wanted()) {
    TAILRACE_TRY(outputs.json.finish(json_text(simulate_json(plan, result))));
  }
  if (outputs.csv.wanted()) TAILRACE_TRY(outputs.csv.finish(simulate_csv(plan, result)));
  if (outputs.trace.wanted()) {
    const std::vector<TraceEvent> trace = simulate_trace(result);
    TAILRACE_TRY(outputs.trace.finish(trace_json(trace, {})));
  }
  if (arguments.plot_path.empty()) return Status();
  return chart::write_figure(simulate_chart(plan, result), arguments.plot_path).within("--plot");
}

Status simulate(const SimulateArguments& arguments) {
  TAILRACE_TAKE(const SimulatePlan plan, understand_simulate(arguments));
  Outputs outputs;
  TAILRACE_TRY(open_outputs(arguments, outputs));
  return arguments.figure != 0 ? make_figure(arguments, plan, outputs)
                               : make_run(arguments, plan, outputs);
}

}  // namespace

Command add_simulate(CLI::App& app) {
  const auto arguments = std::make_shared<SimulateArguments>();
  SimulateArguments& given = *arguments;
  CLI::App* sub = app.add_subcommand("simulate", kSimulateDescription);
  sub->footer(kSimulateFooter);
  add_application(sub, given);
  add_costs(sub, given);
  add_output(sub, given);
  const Group reports(sub, "Reports");
  reports("--figure", given.figure, "3|7|8|11",
          "Compute this figure of the paper instead of one run; the options above still apply.");
  reports("--plot", given.plot_path, "FILE", "Draw the result, .png or .svg.");
  reports("--csv", given.csv_path, "FILE",
          "Write the numbers of the figure, or of each iteration, as CSV.");
  reports("--trace", given.trace_path, "FILE",
          "Write the last in-situ iteration of the first ranks, in virtual time, for "
          "ui.perfetto.dev (Chrome trace JSON).");
  reports("--trace-ranks", given.trace_ranks, "N",
          "Number of traced ranks of the first node. Default 4.");
  reports("--threads", given.n_threads, "N", "Threads of the simulator. Default 0: one per core.");
  reports("--json", given.json_path, "FILE", "Write the numbers as JSON; '-' is standard output.");
  reports.flag("-q,--quiet", given.quiet, "No table.");
  help_option(sub);
  return [arguments](Session& session) {
    return run_at_root(session, [&] { return simulate(*arguments); });
  };
}

}  // namespace tailrace::cli
