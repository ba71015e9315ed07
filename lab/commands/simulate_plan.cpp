// Conversion of arguments to a plan.

#include "simulate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <thread>

#include "core/environment.hpp"
#include "core/options.hpp"
#include "schedule/lane_rule.hpp"

namespace tailrace::cli {
namespace {

/// Number of plans for which the search is affordable: about 16 s on one core (72 jobs).
constexpr std::size_t kSearchPlansMost = 4096;

/// Parse "25MB" or "25MB/s" into `target`; empty text leaves `target` unchanged.
template <class T>
Status parse_size(const char* option, std::string text, T& target) {
  if (text.empty()) return Status();
  if (text.ends_with("/s")) text.resize(text.size() - 2);
  TAILRACE_TAKE(const std::uint64_t bytes, parse_bytes(text).within(option));
  if (bytes == 0) return Status(Code::invalid_argument, fmt::format("{}: must be above 0", option));
  target = static_cast<T>(bytes);
  return Status();
}

Status load_profile(const SimulateArguments& arguments, SimulatePlan& plan) {
  const char* variable = environment_variable("TAILRACE_PROFILE");
  plan.profile_name = arguments.profile;
  if (plan.profile_name.empty() && variable != nullptr) plan.profile_name = variable;
  if (plan.profile_name.empty() || plan.profile_name == kBuiltInProfileName) {
    plan.profile = built_in_profile();
    plan.profile_name = "the built-in profile";
    return Status();
  }
  TAILRACE_TAKE(const auto text, read_settings_file(plan.profile_name).within("--profile"));
  TAILRACE_TAKE(plan.profile, parse_profile(text).within(plan.profile_name));
  return Status();
}

Status understand_application(const SimulateArguments& arguments, SimulatePlan& plan) {
  VirtualApplication& application = plan.application;
  TAILRACE_TAKE(application, virtual_application(arguments.application).within("--application"));
  for (const auto& set : arguments.application_setters) set(application);
  TAILRACE_TRY(parse_size("--field-bytes", arguments.field_bytes, application.field_bytes));
  return parse_size("--chunk", arguments.chunk_bytes, application.chunk_bytes);
}

Status understand_recording(const SimulateArguments& arguments, SimulatePlan& plan) {
  if (arguments.recording.empty()) return Status();
  TAILRACE_TAKE(const auto text,
                read_text_file(arguments.recording, "--recording " + arguments.recording));
  TAILRACE_TAKE(auto recording, parse_recording(text).within("--recording " + arguments.recording));
  plan.n_ranks = recording.ranks.size();
  plan.ranks_per_node = recording.ranks_per_node;
  plan.n_iterations = recording.ranks.front().size() - 1;
  plan.recording = std::make_shared<const Recording>(std::move(recording));
  return Status();
}

Status understand_step_costs(const SimulateArguments& arguments, SimulatePlan& plan) {
  std::string requested = arguments.step_costs;
  if (requested.empty()) {
    requested = plan.recording != nullptr || arguments.figure != 0 ? "off" : "on";
  }
  if (requested != "on" && requested != "off") {
    return Status(Code::invalid_argument, "--step-costs " + requested + ": must be on or off");
  }
  if (arguments.metadata != "beside" && arguments.metadata != "within") {
    return Status(Code::invalid_argument,
                  "--metadata " + arguments.metadata + ": must be beside or within");
  }
  if (requested == "on") plan.run.step_constants = plan.profile.step;
  plan.run.step_shape.metadata_in_background = arguments.metadata == "beside";
  return Status();
}

Status understand_costs(const SimulateArguments& arguments, SimulatePlan& plan) {
  TAILRACE_TRY(load_profile(arguments, plan));
  TAILRACE_TRY(parse_size("--bandwidth", arguments.bandwidth, plan.bandwidth));
  TAILRACE_TRY(parse_size("--total-bandwidth", arguments.total_bandwidth, plan.total_bandwidth));
  if (plan.total_bandwidth > 0 && plan.bandwidth == 0) {
    return Status(Code::invalid_argument,
                  "--total-bandwidth: needs --bandwidth, the bandwidth of one rank");
  }
  plan.recorded_writes =
      plan.recording != nullptr && plan.bandwidth == 0 && arguments.profile.empty();
  if (!plan.recorded_writes && plan.bandwidth == 0 && !plan.profile.write.known()) {
    return Status(Code::invalid_argument,
                  plan.profile_name + ": has no storage measurements; give --bandwidth");
  }
  double throughput = 0;
  TAILRACE_TRY(parse_size("--encode", arguments.encode, throughput));
  if (throughput > 0) {
    plan.encode_text = fmt::format("{}/s a core", size_text(std::uint64_t(throughput)));
    plan.story.costs.encode_s = [throughput](double raw, double) { return raw / throughput; };
  } else if (const CodecProfile* codec = plan.profile.find(arguments.codec); codec != nullptr) {
    plan.encode_text = fmt::format("{} as in {}", codec->codec, plan.profile_name);
    plan.story.costs.encode_s = [curve = codec->encode](double raw, double encoded) {
      return curve.seconds(raw, encoded);
    };
  } else {
    return Status(Code::invalid_argument, fmt::format("--codec {}: does not exist in {}",
                                                      arguments.codec, plan.profile_name));
  }
  TAILRACE_TRY(understand_step_costs(arguments, plan));
  VirtualNoise& noise = plan.story.noise;
  if (arguments.no_noise || plan.recording != nullptr) noise = {0, 0, 0, 0};
  for (const auto& set : arguments.noise_setters) set(noise);
  for (const double sigma : {noise.obstacles, noise.ratio, noise.encode, noise.write}) {
    if (sigma >= 0 && sigma <= 1) continue;
    return Status(Code::invalid_argument, fmt::format("noise {}: must be in [0, 1]", sigma));
  }
  return Status();
}

Status understand_modes(const std::string& text, std::vector<VirtualMode>& modes) {
  if (text == "all") {
    for (const VirtualModeEntry& entry : virtual_mode_registry()) modes.push_back(entry.mode);
    return Status();
  }
  for (const std::string& name : split_at_commas(text)) {
    TAILRACE_TAKE(const VirtualMode mode, parse_virtual_mode(name).within("--modes"));
    modes.push_back(mode);
  }
  return modes.empty() ? Status(Code::invalid_argument, "--modes: expected at least one mode")
                       : Status();
}

Status understand_output(const SimulateArguments& arguments, SimulatePlan& plan) {
  VirtualSettings& node = plan.run.node;
  TAILRACE_TRY(understand_modes(arguments.modes, plan.run.modes));
  plan.scheduler_is_auto = arguments.scheduler == "auto";
  if (!plan.scheduler_is_auto) {
    TAILRACE_TAKE(node.scheduler, parse_scheduler(arguments.scheduler).within("--scheduler"));
  }
  TAILRACE_TAKE(node.balance, parse_balance_rule(arguments.balance).within("--balance"));
  node.budget.n_evaluated_operations = arguments.search_operations;
  node.n_threads = arguments.encode_threads;
  node.shift_forecast = arguments.shift_forecast;
  TAILRACE_TRY(parse_size("--buffer", arguments.buffer, node.buffer_bytes));
  TAILRACE_TRY(parse_size("--memory", arguments.memory, node.memory_bytes));
  if (arguments.hold != "copy" && arguments.hold != "promise") {
    return Status(Code::invalid_argument, "--hold " + arguments.hold + ": must be copy or promise");
  }
  node.hold_copy = arguments.hold == "copy";
  if (arguments.forecast != "given" && arguments.forecast != "learned") {
    return Status(Code::invalid_argument,
                  "--forecast " + arguments.forecast + ": must be given or learned");
  }
  plan.story.learned = arguments.forecast == "learned";
  plan.story.margin =
      arguments.margin.value_or(plan.recording != nullptr ? kLaneMarginDeviations : 1);
  if (!(plan.story.margin >= 0)) {
    return Status(Code::invalid_argument,
                  fmt::format("--margin {}: must be at least 0", plan.story.margin));
  }
  std::string collisions = arguments.io_collisions;
  if (collisions.empty()) collisions = plan.recording != nullptr ? "share" : "wait";
  if (collisions != "wait" && collisions != "share") {
    return Status(Code::invalid_argument,
                  "--io-collisions " + collisions + ": must be wait or share");
  }
  node.waits_for_writes = plan.story.io_margin = collisions == "wait";
  plan.run.synchronized = !arguments.unsynchronized;
  plan.run.n_threads = arguments.n_threads > 0 ? arguments.n_threads
                                               : std::max(std::thread::hardware_concurrency(), 1U);
  return Status();
}

/// Seconds of one rank's write while all ranks write; empty if the recording has the times.
std::function<double(double)> storage_of(const SimulatePlan& plan) {
  if (plan.recorded_writes) return {};
  const auto n_ranks = static_cast<double>(plan.n_ranks);
  if (plan.bandwidth > 0) {
    const double own = plan.total_bandwidth > 0
                           ? std::min(plan.bandwidth, plan.total_bandwidth / n_ranks)
                           : plan.bandwidth;
    return [own](double n_bytes) { return n_bytes / own; };
  }
  return [model = plan.profile.write, n = plan.n_ranks](double n_bytes) {
    return model.seconds(n_bytes, n);
  };
}

/// Set the shape of this workload's steps. A recording does not say how many datasets it had.
void shape_step(SimulatePlan& plan) {
  VirtualStepShape& shape = plan.run.step_shape;
  if (plan.recording != nullptr) {
    const std::vector<std::uint64_t>& raw_bytes = plan.recording->ranks.front().front().raw_bytes;
    shape.n_chunks = static_cast<double>(raw_bytes.size());
    shape.raw_bytes =
        static_cast<double>(std::accumulate(raw_bytes.begin(), raw_bytes.end(), std::uint64_t{0}));
    return;
  }
  const VirtualApplication& application = plan.application;
  const std::uint64_t chunks_of_field =
      (application.field_bytes + application.chunk_bytes - 1) / application.chunk_bytes;
  shape.n_datasets = static_cast<double>(application.n_fields);
  shape.n_chunks = shape.n_datasets * static_cast<double>(chunks_of_field);
  shape.raw_bytes = shape.n_datasets * static_cast<double>(application.field_bytes);
}

}  // namespace

Scheduler scheduler_of(const SimulatePlan& plan) {
  if (!plan.scheduler_is_auto) return plan.run.node.scheduler;
  return plan.n_ranks * plan.n_iterations <= kSearchPlansMost ? Scheduler::search
                                                              : Scheduler::ext_johnson_bf;
}

Result<SimulatePlan> understand_simulate(const SimulateArguments& arguments) {
  SimulatePlan plan;
  TAILRACE_TRY(understand_application(arguments, plan));
  TAILRACE_TRY(understand_recording(arguments, plan));
  if (arguments.n_ranks > 0) plan.n_ranks = arguments.n_ranks;
  if (arguments.ranks_per_node > 0) plan.ranks_per_node = arguments.ranks_per_node;
  if (arguments.n_iterations > 0) plan.n_iterations = arguments.n_iterations;
  TAILRACE_TRY(understand_costs(arguments, plan));
  plan.story.seed = arguments.seed;
  TAILRACE_TRY(understand_output(arguments, plan));
  return plan;
}

Result<VirtualRunResult> run_plan(SimulatePlan plan) {
  plan.run.node.scheduler = scheduler_of(plan);
  plan.run.node.write_s = storage_of(plan);
  plan.story.costs.write_s = plan.run.node.write_s;
  shape_step(plan);
  TAILRACE_TAKE(const auto workload,
                plan.recording != nullptr
                    ? recorded_workload(plan.recording, plan.n_ranks, plan.ranks_per_node,
                                        plan.n_iterations, plan.story)
                    : generated_workload(plan.application, plan.n_ranks, plan.ranks_per_node,
                                         plan.n_iterations, plan.story));
  return simulate_run(workload, plan.run);
}

std::string storage_text(const SimulatePlan& plan) {
  if (plan.recorded_writes) return "writes as recorded";
  if (plan.bandwidth > 0) {
    std::string text = fmt::format("{}/s a rank", size_text(std::uint64_t(plan.bandwidth)));
    if (plan.total_bandwidth > 0) {
      text += fmt::format(", {}/s of all", size_text(std::uint64_t(plan.total_bandwidth)));
    }
    return text;
  }
  const double chunk = 16 << 20;
  return fmt::format(
      "{}: {}/s a rank for writes of 16 MiB", plan.profile_name,
      size_text(std::uint64_t(chunk / plan.profile.write.seconds(chunk, plan.n_ranks))));
}

std::string workload_text(const SimulatePlan& plan) {
  if (plan.recording != nullptr) {
    return fmt::format("recorded: {} of {}", counted(plan.recording->ranks.size(), "rank"),
                       counted(plan.recording->ranks.front().size(), "iteration"));
  }
  const VirtualApplication& application = plan.application;
  return fmt::format(
      "{}: {} of {} a rank in chunks of {}, ratio {:g} (a node's ranks {:g} apart), "
      "iterations of {:g} s of which the application needs {:.0f}% of the main "
      "and {:.0f}% of the I/O lane",
      application.name, counted(application.n_fields, "field"), bytes_text(application.field_bytes),
      bytes_text(application.chunk_bytes), application.mean_ratio, application.ratio_difference,
      application.iteration_s, 100 * application.main_busy_share, 100 * application.io_busy_share);
}

}  // namespace tailrace::cli
