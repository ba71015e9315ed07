// Every option of `tailrace schedule` with its unit and default; examples first.

#include <fmt/format.h>

#include "command_line.hpp"
#include "option_group.hpp"

#include "schedule/flow_shop.hpp"

namespace tailrace::cli {
namespace {

constexpr const char* description =
    R"help(Plan encodes and writes around an application's own work, and compare planners

Examples:
  tailrace schedule instance.json
      all schedulers: makespans, and how far above what no plan can beat
  tailrace schedule instance.json --exact cp-sat --time-limit 30 --plot gantt.svg
      and an exact solver, which may prove what the best plan is; drawn as Gantt charts
  tailrace schedule --random n=50,seed=7,main-load=1.05 --scheduler search,ext-johnson+bf
      a random instance of 50 jobs
)help";

constexpr const char* footer =
    R"help(Instance (JSON, seconds since the iteration began):
  {"iteration_s": 4, "jobs": [{"name": "rho #0", "encode_s": 0.031, "write_s": 0.012}, ...],
   "obstacles": {"main": [[0.3, 0.7], ...], "io": [[0, 0.1], ...]}}
  A job is encoded on the main lane, then written on the I/O lane; neither while the application
  needs that lane (an obstacle), nor interrupted. The makespan is the end of the last write.
  "name", "iteration_s" and lanes without obstacles may be left out.

Keys of --random: n, seed, iteration (seconds), main-obstacles and io-obstacles (how many),
  main-share and io-share (of the iteration that they cover), main-load and io-load (operations
  over the free time left), encode-sigma and write-sigma (lognormal). What is not given is drawn.

Exit codes: 0 done, 1 a plan is invalid, 2 usage or bad input, 3 the solver is not installed.)help";

std::string scheduler_help() {
  std::string text = "Schedulers to run, separated by commas; all; none. Default all.";
  for (const SchedulerEntry& entry : scheduler_registry()) {
    text += fmt::format("\n  {}: {}", entry.name, entry.summary);
  }
  return text;
}

}  // namespace

void add_schedule(CLI::App& app, ScheduleArguments& schedule) {
  CLI::App* sub = app.add_subcommand("schedule", description);
  const Group reports(sub, "Reports");
  const Group input(sub, "Input");
  sub->footer(footer);
  sub->add_option("INSTANCE", schedule.input, "JSON, as below; '-' is standard input.");
  input("--random", schedule.random, "KEY=VALUE,...",
        "Draw an instance instead of reading one, such as n=50,seed=7.");
  input("--save", schedule.save_path, "FILE", "Write the instance as JSON.");
  const Group what(sub, "What plans");
  what("-s,--scheduler", schedule.schedulers, "NAME,...", scheduler_help());
  what("--exact", schedule.exact, "SOLVER,...",
       "ilp: the integer program of Jin et al. 2024, by HiGHS (Python package highspy). "
       "cp-sat: a constraint model, by OR-tools (ortools). Both start from the best plan of "
       "the schedulers. TAILRACE_PYTHON names the interpreter. Default: none.");
  what("--time-limit", schedule.time_limit_s, "SECONDS",
       "What an exact solver may take. Default 60.");
  what("--workers", schedule.n_workers, "N", "Threads of an exact solver. Default 0: as it likes.");
  reports("--plot", schedule.plot_path, "FILE", "Draw both lanes under each plan, .svg or .png.");
  reports("--json", schedule.json_path, "FILE",
          "Write numbers and plans as JSON; '-' is stdout, in place of the table.");
  reports.flag("-q,--quiet", schedule.quiet, "No table: the exit code says it all.");
  sub->set_help_flag("-h,--help", "Print this and exit.")->group("Reports");
}

}  // namespace tailrace::cli
