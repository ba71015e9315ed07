// tailrace-lab schedule: plans one instance by several schedulers, checks and compares the plans.
//
// Only rank 0 works; the others agree with it on the exit code.

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <charconv>

#include "exec/lane_clock.hpp"
#include "lab_commands.hpp"
#include "schedule.hpp"
#include "schedule/flow_shop.hpp"
#include "simulate/random_flow_shop.hpp"

namespace tailrace::cli {
namespace {

struct ScheduleArguments {
  std::string input;               ///< Instance, JSON; empty: random.
  std::string random;              ///< "n=50,seed=7"; empty: read from the input.
  std::string save_path;           ///< File for the instance; empty: none.
  std::string schedulers = "all";  ///< Names, "all" or "none".
  std::string exact;               ///< "ilp", "cp-sat" or both; empty: no solver.
  double time_limit_s = 60;        ///< Time limit of each solver.
  std::size_t n_workers = 0;       ///< Threads of a solver; 0: the solver's choice.
  std::string plot_path;
  std::string json_path;
  bool quiet = false;
};

constexpr const char* kScheduleDescription =
    R"help(Plan encodes and writes around an application's own work, and compare planners

Examples:
  tailrace-lab schedule instance.json
      all schedulers: makespans, and their distance from the lower bound
  tailrace-lab schedule instance.json --exact cp-sat --time-limit 30 --plot gantt.svg
      also an exact solver, which may prove a plan optimal; draws Gantt charts
  tailrace-lab schedule --random n=50,seed=7,main-load=1.05 --scheduler search,ext-johnson+bf
      a random instance of 50 jobs
)help";

constexpr const char* kScheduleFooter =
    R"help(Instance (JSON, seconds since the iteration began):
  {"iteration_s": 4,
    "jobs": [{"name": "rho #0", "encode_s": 0.031, "write_s": 0.012}, ...],
      "obstacles": {"main": [[0.3, 0.7], ...], "io": [[0, 0.1], ...]}}
  A job is encoded on the main lane, then written on the I/O lane; neither while the application
  needs that lane (an obstacle), nor interrupted. The makespan is the end of the last write.
  "name", "iteration_s" and lanes without obstacles are optional.

Keys of --random: n, seed, iteration (seconds), main-obstacles and io-obstacles (how many),
  main-share and io-share (of the iteration that they cover), main-load and io-load (operations
  over the free time left), encode-sigma and write-sigma (lognormal). Missing keys are random.

Exit codes: 0 done, 1 a plan is invalid, 2 usage or bad input, 3 the solver is not installed.)help";

constexpr double kTimeLimitMaxS = 86400;
constexpr std::size_t kNJobsMax = 100000;

/// Schedulers and solvers to run. @error invalid_argument  names the option.
struct SchedulePlan {
  std::vector<Scheduler> schedulers;
  std::vector<std::string> solvers;
};

Result<SchedulePlan> understand(const ScheduleArguments& arguments) {
  SchedulePlan plan;
  if (arguments.schedulers == "all") {
    for (const SchedulerEntry& entry : scheduler_registry()) {
      plan.schedulers.push_back(entry.scheduler);
    }
  } else if (arguments.schedulers != "none") {
    for (const std::string& name : split_at_commas(arguments.schedulers)) {
      TAILRACE_TAKE(const Scheduler scheduler, parse_scheduler(name).within("--scheduler"));
      plan.schedulers.push_back(scheduler);
    }
  }
  if (!arguments.exact.empty()) plan.solvers = split_at_commas(arguments.exact);
  for (const std::string& solver : plan.solvers) {
    if (solver == "ilp" || solver == "cp-sat") continue;
    return Status(
        Code::invalid_argument,
        fmt::format("--exact: unknown solver \"{}\"; known solvers: ilp, cp-sat", solver));
  }
  if (!(arguments.time_limit_s > 0 && arguments.time_limit_s <= kTimeLimitMaxS)) {
    return Status(Code::invalid_argument,
                  fmt::format("--time-limit {}: must be above 0 and at most {} s",
                              arguments.time_limit_s, kTimeLimitMaxS));
  }
  TAILRACE_TRY(check_plot_path(arguments.plot_path));
  if (arguments.input.empty() == arguments.random.empty()) {
    return Status(Code::invalid_argument,
                  "give either an INSTANCE or --random; see tailrace-lab schedule --help");
  }
  return plan;
}

// --- random instances ---------------------------------------------------------------------------

template <class Number>
Status read_number(const std::string& key, const std::string& text, Number least, Number greatest,
                   Number& target) {
  Number value{};
  const char* end = text.data() + text.size();
  const auto [stopped, error] = std::from_chars(text.data(), end, value);
  const bool good = error == std::errc() && stopped == end && value >= least && value <= greatest;
  if (!good) {
    return {Code::invalid_argument, fmt::format("--random: {} must be a number from {} to {}, is "
                                                "\"{}\"",
                                                key, least, greatest, text)};
  }
  target = value;
  return {};
}

/// Set one key of a shape.
Status set_shape(FlowShopShape& shape, const std::string& key, const std::string& text) {
  if (key == "iteration") return read_number(key, text, 1e-3, 1e6, shape.iteration_s);
  if (key == "main-obstacles") {
    return read_number<std::size_t>(key, text, 0, kNJobsMax, shape.n_main_obstacles);
  }
  if (key == "io-obstacles") {
    return read_number<std::size_t>(key, text, 0, kNJobsMax, shape.n_io_obstacles);
  }
  if (key == "main-share") return read_number(key, text, 0.0, 0.99, shape.main_obstacle_share);
  if (key == "io-share") return read_number(key, text, 0.0, 0.99, shape.io_obstacle_share);
  if (key == "main-load") return read_number(key, text, 0.0, 1e3, shape.main_load);
  if (key == "io-load") return read_number(key, text, 0.0, 1e3, shape.io_load);
  if (key == "encode-sigma") return read_number(key, text, 0.0, 5.0, shape.encode_sigma);
  if (key == "write-sigma") return read_number(key, text, 0.0, 5.0, shape.write_sigma);
  return {Code::invalid_argument,
          fmt::format(
              "--random: unknown key \"{}\"; known keys: n, seed, iteration, main-obstacles, "
              "io-obstacles, main-share, io-share, main-load, io-load, encode-sigma, write-sigma",
              key)};
}

/// Draw an instance from "n=50,seed=7,main-load=0.9". The seed determines the shape; the other keys
/// override its values.
Result<ScheduleInstance> draw_instance(const std::string& text) {
  std::size_t n_jobs = FlowShopShape().n_jobs;
  std::uint64_t seed = 1;
  std::vector<KeyValue> rest;
  for (const std::string& word : split_at_commas(text)) {
    const std::size_t equals = word.find('=');
    if (equals == std::string::npos) {
      return Status(Code::invalid_argument,
                    fmt::format("--random: \"{}\" must be KEY=VALUE", word));
    }
    const std::string key = word.substr(0, equals);
    const std::string value = word.substr(equals + 1);
    if (key == "n") {
      TAILRACE_TRY(read_number<std::size_t>(key, value, 0, kNJobsMax, n_jobs));
    } else if (key == "seed") {
      TAILRACE_TRY(read_number<std::uint64_t>(key, value, 0, UINT64_MAX, seed));
    } else {
      rest.emplace_back(key, value);
    }
  }
  FlowShopShape shape = random_shape(n_jobs, seed);
  for (const auto& [key, value] : rest) TAILRACE_TRY(set_shape(shape, key, value));
  ScheduleInstance instance;
  // Like random_flow_shop(n_jobs, seed), which draws the times from a separate stream.
  instance.shop = random_flow_shop(shape, ~seed);
  return instance;
}

// --- planning -----------------------------------------------------------------------------------

std::string_view name_of(Scheduler scheduler) {
  for (const SchedulerEntry& entry : scheduler_registry()) {
    if (entry.scheduler == scheduler) return entry.name;
  }
  return "?";
}

CheckedPlan plan_by(const FlowShop& shop, Scheduler scheduler) {
  CheckedPlan checked;
  checked.scheduler = name_of(scheduler);
  const double begin = thread_cpu_s();
  checked.plan = schedule_flow_shop(shop, scheduler);
  checked.plan_s = thread_cpu_s() - begin;
  checked.problem = check_plan(shop, *checked.plan).message();
  return checked;
}

/// The best valid plan so far; nullptr: none.
const FlowShopPlan* best_of(const std::vector<CheckedPlan>& plans) {
  const FlowShopPlan* best = nullptr;
  for (const CheckedPlan& checked : plans) {
    if (!checked.plan || !checked.problem.empty()) continue;
    if (best == nullptr || checked.plan->makespan_s < best->makespan_s) best = &*checked.plan;
  }
  return best;
}

Status add_exact(ScheduleReport& report, const std::string& solver,
                 const ScheduleArguments& arguments) {
  const FlowShop& shop = report.instance.shop;
  const FlowShopPlan* best = best_of(report.plans);
  const std::optional<FlowShopPlan> hint = best == nullptr ? std::nullopt : std::optional(*best);
  const ExactRequest request{.solver = solver,
                             .time_limit_s = arguments.time_limit_s,
                             .n_workers = arguments.n_workers,
                             .lower_bound_s = report.lower_bound_s,
                             .hint = hint ? &*hint : nullptr};
  TAILRACE_TAKE(ExactOutcome outcome, schedule_exactly(shop, request).within("--exact " + solver));
  CheckedPlan checked;
  checked.scheduler = solver;
  checked.plan = outcome.plan;
  checked.plan_s = outcome.solve_s;
  checked.solver = outcome.solver;
  checked.solver_bound_s = outcome.lower_bound_s;
  if (checked.plan) checked.problem = check_plan(shop, *checked.plan).message();
  report.plans.push_back(std::move(checked));
  return {};
}

/// Combine all bounds. A solver's bound within its tolerance of the best plan becomes that plan's
/// makespan. @error internal  a bound lies above a plan.
Status combine_bounds(ScheduleReport& report) {
  constexpr double tolerance = 1e-7;
  report.best_bound_s = report.lower_bound_s;
  report.best_bound_source = "lower bound";
  const FlowShopPlan* best = best_of(report.plans);
  for (const CheckedPlan& checked : report.plans) {
    if (checked.solver_bound_s <= report.best_bound_s) continue;
    report.best_bound_s = checked.solver_bound_s;
    report.best_bound_source = checked.solver;
  }
  if (best == nullptr) return {};
  if (report.best_bound_s > best->makespan_s * (1 + tolerance)) {
    return {Code::internal,
            fmt::format("{} claims that no plan ends before {} s, but one ends at {} s",
                        report.best_bound_source, report.best_bound_s, best->makespan_s)};
  }
  if (report.best_bound_s > best->makespan_s * (1 - tolerance)) {
    report.best_bound_s = best->makespan_s;
  }
  return {};
}

Status make_report(ScheduleReport& report, const SchedulePlan& plan,
                   const ScheduleArguments& arguments) {
  TAILRACE_TAKE(report.instance, arguments.random.empty() ? read_schedule_instance(arguments.input)
                                                          : draw_instance(arguments.random));
  report.source = arguments.random.empty() ? arguments.input : "random " + arguments.random;
  const FlowShop& shop = report.instance.shop;
  report.lower_bound_s = makespan_lower_bound_s(shop);
  for (const Scheduler scheduler : plan.schedulers) {
    report.plans.push_back(plan_by(shop, scheduler));
  }
  for (const std::string& solver : plan.solvers) {
    TAILRACE_TRY(add_exact(report, solver, arguments));
  }
  return combine_bounds(report);
}

/// Run the complete command on rank 0. @error bound_broken  a plan is not valid, which is our bug.
Status schedule(const ScheduleArguments& arguments, ReportFile& json, ReportFile& saved) {
  TAILRACE_TAKE(const SchedulePlan plan, understand(arguments));
  ScheduleReport report;
  TAILRACE_TRY(make_report(report, plan, arguments));
  if (!arguments.quiet && !json.to_stdout()) print_text(schedule_table(report));
  if (saved.wanted()) {
    TAILRACE_TRY(saved.finish(json_text(schedule_instance_json(report.instance))));
  }
  if (json.wanted()) TAILRACE_TRY(json.finish(json_text(schedule_json(report))));
  if (!arguments.plot_path.empty()) {
    TAILRACE_TRY(
        chart::write_figure(schedule_figure(report), arguments.plot_path).within("--plot"));
  }
  for (const CheckedPlan& checked : report.plans) {
    if (checked.problem.empty()) continue;
    return {Code::bound_broken,
            fmt::format("the plan of {} is not valid: {}", checked.scheduler, checked.problem)};
  }
  return {};
}

int run_schedule(Session& session, const ScheduleArguments& arguments) {
  ReportFile json;
  ReportFile saved;
  Status status = json.open(arguments.json_path, session.speaks());
  if (status.ok()) status = saved.open(arguments.save_path, session.speaks());
  status = session.agree(status);
  if (status.ok()) {
    status = session.agree(session.speaks() ? schedule(arguments, json, saved) : Status());
  }
  if (status.ok()) return kExitDone;
  const int code = session.fail(status);
  return status.code() == Code::plugin_missing ? kExitResources : code;
}

}  // namespace

Command add_schedule(CLI::App& app) {
  const auto arguments = std::make_shared<ScheduleArguments>();
  ScheduleArguments& schedule = *arguments;
  CLI::App* sub = app.add_subcommand("schedule", kScheduleDescription);
  const Group reports(sub, "Reports");
  const Group input(sub, "Input");
  sub->footer(kScheduleFooter);
  sub->add_option("INSTANCE", schedule.input, "JSON, as below; '-' is standard input.");
  input("--random", schedule.random, "KEY=VALUE,...",
        "Draw a random instance instead of reading one, such as n=50,seed=7.");
  input("--save", schedule.save_path, "FILE", "Write the instance as JSON.");
  const Group what(sub, "Schedulers");
  what("-s,--scheduler", schedule.schedulers, "NAME,...",
       help_of("Schedulers to run, separated by commas; all; none. Default all.",
               scheduler_registry()));
  what("--exact", schedule.exact, "SOLVER,...",
       "ilp: the integer program of Jin et al. 2024, by HiGHS (Python package highspy). "
       "cp-sat: a constraint model, by OR-tools (ortools). Both start from the best plan of "
       "the schedulers. TAILRACE_PYTHON names the interpreter. Default: none.");
  what("--time-limit", schedule.time_limit_s, "SECONDS",
       "Time limit of an exact solver. Default 60.");
  what("--workers", schedule.n_workers, "N",
       "Threads of an exact solver. Default 0: the choice of the solver.");
  reports("--plot", schedule.plot_path, "FILE", "Draw both lanes under each plan, .svg or .png.");
  reports("--json", schedule.json_path, "FILE",
          "Write numbers and plans as JSON; '-' is stdout, in place of the table.");
  reports.flag("-q,--quiet", schedule.quiet, "No table; the exit code has the result.");
  help_option(sub);
  return [arguments](Session& session) { return run_schedule(session, *arguments); };
}

}  // namespace tailrace::cli
