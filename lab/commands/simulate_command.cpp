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

constexpr const char* simulate_description =
    R"help(Simulate output during an application's iterations, on any number of ranks

Examples:
  tailrace-lab simulate --ranks 512 --bandwidth 25MB/s
      a Nyx-like application on storage that gives each rank 25 MB/s: all ways to output, compared
  tailrace-lab simulate --recording run.json --bandwidth 100MB/s --plot run.svg
      recorded iterations on other storage
  tailrace-lab simulate --application warpx --ranks 32768 --profile machine.json
      on the measured machine's rooflines
  tailrace-lab simulate --figure 8 --plot figure_8.svg --csv figure_8.csv
      a figure of the paper (Jin et al. 2024): 3, 7, 8 or 11
)help";

constexpr const char* simulate_footer =
    R"help(Virtual time, real decisions: plans, the rule of the lanes, balancing and forecasts are
those of mode=in_situ; the application and how long operations take are simulated. Overheads are
relative to the computation alone. docs/decisions.md says what is modelled, what is not, and what a
recording looks like.)help";

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
       "Replay recorded iterations instead (JSON, docs/decisions.md); further ranks and iterations "
       "begin again at the first.");
  what("--ranks", simulate.n_ranks, "N", "Default 64, or as recorded.");
  what("--ranks-per-node", simulate.ranks_per_node, "N", "Default 4, or as recorded.");
  what("--iterations", simulate.n_iterations, "N", "Default 10, or as recorded.");
  what("--seed", simulate.seed, "N", "Of all draws. Default 1.");

  const Group shape(sub, "The application, where it differs from the one named");
  auto& words = simulate.application_words;
  shape.later("--iteration-time", words, &VirtualApplication::iteration_s, "SECONDS",
              "Of an iteration without output.");
  shape.later("--main-busy", words, &VirtualApplication::main_busy_share, "SHARE",
              "Of an iteration that the application needs the main lane. 0.5.");
  shape.later("--io-busy", words, &VirtualApplication::io_busy_share, "SHARE",
              "Likewise the I/O lane. 0.25.");
  shape.later("--main-obstacles", words, &VirtualApplication::n_main_obstacles, "N",
              "In how many stretches. 10.");
  shape.later("--io-obstacles", words, &VirtualApplication::n_io_obstacles, "N", "Likewise. 8.");
  shape.later("--fields", words, &VirtualApplication::n_fields, "N", "Fields of a rank.");
  shape("--field-bytes", simulate.field_bytes, "SIZE", "Of a rank and field.");
  shape("--chunk", simulate.chunk_bytes, "SIZE", "Largest chunk. 8MiB.");
  shape.later("--ratio", words, &VirtualApplication::mean_ratio, "RATIO", "Mean of all chunks.");
  shape.later("--ratio-difference", words, &VirtualApplication::ratio_difference, "RATIO",
              "Between the largest and the least mean ratio of a node's ranks.");
  shape.later("--ratio-spread", words, &VirtualApplication::chunk_spread, "SIGMA",
              "Of the logarithm of ratios within a rank. 0.3; uniform: 0.");
}

void add_costs(CLI::App* sub, SimulateArguments& simulate) {
  const Group costs(sub, "How long operations take");
  costs("--bandwidth", simulate.bandwidth, "SIZE/s",
        "Storage gives each rank this, whatever the size of a write. Default: as --profile says; "
        "with a recording, what was recorded.");
  costs("--total-bandwidth", simulate.total_bandwidth, "SIZE/s",
        "All ranks share this at most (with --bandwidth).");
  costs("--profile", simulate.profile, "FILE",
        "Machine profile: rooflines of storage, throughput of codecs. Default: TAILRACE_PROFILE, "
        "else typical values.");
  costs("--codec", simulate.codec, "CODEC", "Of the profile. Default trz.");
  costs("--encode", simulate.encode, "SIZE/s",
        "Raw bytes that a core encodes, instead of the profile's curve.");
  costs.later("--noise-obstacles", simulate.noise_words, &VirtualNoise::obstacles, "SIGMA",
              "Of starts and ends, as a share of the iteration. Default 0.01; recordings 0.");
  costs.later("--noise-ratio", simulate.noise_words, &VirtualNoise::ratio, "SIGMA",
              "Of a chunk's ratio against its forecast. Default 0.1; recordings 0.");
  costs.later("--noise-encode", simulate.noise_words, &VirtualNoise::encode, "SIGMA",
              "Of encode throughput. Default 0.05; recordings 0.");
  costs.later("--noise-write", simulate.noise_words, &VirtualNoise::write, "SIGMA",
              "Of I/O throughput. Default 0.05; recordings 0.");
  costs("--step-costs", simulate.step_costs, "on|off",
        "What a step costs beside its bytes, as --profile says: messages between ranks, index and "
        "commit at rank 0, copies, claims. off: nothing, as in the paper. Default on; recordings "
        "and figures off.");
  costs.flag("--no-noise", simulate.no_noise, "Everything comes as forecast.");
}

void add_output(CLI::App* sub, SimulateArguments& simulate) {
  const Group output(sub, "How output is done");
  output("--modes", simulate.modes, "LIST",
         help_of("Ways to output to compare, separated by commas. Default all.",
                 virtual_mode_registry()));
  output("--scheduler", simulate.scheduler, "NAME",
         "Planner of mode in-situ (see tailrace-lab schedule). Default auto: search up to 4096 "
         "plans, else ext-johnson+bf.");
  output("--search-operations", simulate.search_operations, "N",
         "Budget of the scheduler search. Default 400000, about 4 ms; the product's is 2000000.");
  output("--balance", simulate.balance, "RULE",
         "Of writes within a node: off, paper, best. Default best.");
  output("--buffer", simulate.buffer, "SIZE", "Largest single write. Default 16MiB.");
  output("--memory", simulate.memory, "SIZE", "Cap of a rank. Default: none.");
  output("--hold", simulate.hold, "copy|promise",
         "copy: values count against --memory until they are encoded. Default promise.");
  output("--encode-threads", simulate.encode_threads, "N",
         "Of modes sync-encoded and async-encoded. Default 1.");
  output("--forecast", simulate.forecast, "given|learned",
         "Obstacles: known but for the noise, or learned from the iterations before, as the "
         "product does. Default given; recordings are always learned.");
  output("--margin", simulate.margin, "SIGMAS",
         "Standard deviations of an obstacle's start that lanes keep free before it. Default 1; "
         "recordings 2, as in the product, but at most a chunk's encoding.");
  output("--io-collisions", simulate.io_collisions, "wait|share",
         "An obstacle of the I/O lane that comes during a write. wait: until the write has ended, "
         "as in the paper. share: both go on, as in the product, which keeps no margin there. "
         "Default wait; recordings share.");
  output("--metadata", simulate.metadata, "beside|within",
         "Who makes the metadata of a step that is handed over. beside: a thread of rank 0, while "
         "the application computes. within: rank 0 in end_step, all others waiting, as where HDF5 "
         "is not built for threads. Default beside.");
  output.flag("--shift-forecast", simulate.shift_forecast,
              "What the application has waited for output moves the forecast of its later "
              "obstacles. Default: it does not.");
  output.flag("--unsynchronized", simulate.unsynchronized,
              "Ranks go on by themselves. Default: an iteration begins when the slowest rank has "
              "ended the one before, as with collectives.");
}

struct Outputs {
  ReportFile json;
  ReportFile csv;
  ReportFile trace;
};

Status open_outputs(const SimulateArguments& arguments, Outputs& outputs) {
  TAILRACE_TRY(check_plot_path(arguments.plot_path));
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
  SimulateArguments& words = *arguments;
  CLI::App* sub = app.add_subcommand("simulate", simulate_description);
  sub->footer(simulate_footer);
  add_application(sub, words);
  add_costs(sub, words);
  add_output(sub, words);
  const Group reports(sub, "Reports");
  reports("--figure", words.figure, "3|7|8|11",
          "Compute this figure of the paper instead of one run; the options above still count.");
  reports("--plot", words.plot_path, "FILE", "Draw the result, .png or .svg.");
  reports("--csv", words.csv_path, "FILE", "The figure's numbers, or each iteration's.");
  reports("--trace", words.trace_path, "FILE",
          "The last iteration in situ of the first ranks, for ui.perfetto.dev (Chrome trace JSON). "
          "Its times are virtual.");
  reports("--trace-ranks", words.trace_ranks, "N", "Of the first node. Default 4.");
  reports("--threads", words.n_threads, "N", "Of the simulator. Default 0: one a core.");
  reports("--json", words.json_path, "FILE", "The numbers as JSON; '-' is standard output.");
  reports.flag("-q,--quiet", words.quiet, "No table.");
  help_option(sub);
  return [arguments](Session& session) {
    return run_at_root(session, [&] { return simulate(*arguments); });
  };
}

}  // namespace tailrace::cli
