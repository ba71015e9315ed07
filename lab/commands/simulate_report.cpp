// Text, numbers and charts of a simulated run.

#include "simulate.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>

#include "report/text_table.hpp"

namespace tailrace::cli {
namespace {

std::string percent_text(double share) {
  return fmt::format("{:.{}f}%", 100 * share, share < 0.0995 ? 2 : share < 0.995 ? 1 : 0);
}

/// "12.3 ms", "1.24 s"; "-" for 0.
std::string time_text(double seconds) {
  if (seconds <= 0) return "-";
  if (seconds < 0.9995) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

std::string scheduler_text(const SimulatePlan& plan) {
  const Scheduler scheduler = scheduler_of(plan);
  for (const SchedulerEntry& entry : scheduler_registry()) {
    if (entry.scheduler != scheduler) continue;
    std::string text(entry.name);
    if (scheduler == Scheduler::search) {
      text += fmt::format(" ({} operations)", plan.run.node.budget.n_evaluated_operations);
    }
    return text;
  }
  return "";
}

std::string_view balance_text(BalanceRule rule) {
  return rule == BalanceRule::off ? "off" : rule == BalanceRule::paper ? "paper" : "best";
}

VirtualIteration mean_of(const VirtualModeResult& mode) {
  VirtualIteration mean;
  for (const VirtualIteration& one : mode.iterations) {
    mean.total_s += one.total_s;
    mean.exposed_s += one.exposed_s;
    mean.delay_s += one.delay_s;
    mean.back_pressure_s += one.back_pressure_s;
    mean.longest_delay_s = std::max(mean.longest_delay_s, one.longest_delay_s);
    mean.n_delayed[0] += one.n_delayed[0];
    mean.n_delayed[1] += one.n_delayed[1];
    mean.n_writes += one.n_writes;
    mean.written_bytes += one.written_bytes;
    mean.step = one.step;  // Equal in all iterations, except for the writes.
  }
  const auto n = static_cast<double>(std::max<std::size_t>(mode.iterations.size(), 1));
  mean.total_s /= n;
  mean.exposed_s /= n;
  mean.delay_s /= n;
  mean.back_pressure_s /= n;
  return mean;
}

/// Number of ranks times number of iterations.
double rank_iterations(const SimulatePlan& plan) {
  return static_cast<double>(plan.n_ranks) * static_cast<double>(plan.n_iterations);
}

constexpr std::size_t kObstacleColour = 2;
constexpr std::size_t kEncodeBarColour = 1;
constexpr std::size_t kWriteBarColour = 0;

/// Two rows per rank; the application's intervals lie between those of Tailrace.
chart::Panel gantt_panel(const VirtualRunResult& result, std::size_t n_ranks) {
  chart::Panel panel;
  panel.title = "In situ: the last iteration";
  panel.x.label = "virtual time (s)";
  chart::Gantt gantt;
  gantt.colours = {"write", "encode", "the application"};
  for (std::size_t rank = 0; rank < n_ranks; ++rank) {
    gantt.rows.push_back(fmt::format("{} main", rank));
    gantt.rows.push_back(fmt::format("{} I/O", rank));
  }
  for (const VirtualEvent& event : result.events) {
    if (event.rank >= n_ranks || event.kind == VirtualEvent::Kind::delay) continue;
    const std::size_t colour = event.kind == VirtualEvent::Kind::obstacle ? kObstacleColour
                               : event.kind == VirtualEvent::Kind::encode ? kEncodeBarColour
                                                                          : kWriteBarColour;
    gantt.intervals.push_back(
        {2 * event.rank + (event.lane == Lane::io ? 1U : 0U), event.start_s, event.end_s, colour});
  }
  panel.gantt = std::move(gantt);
  return panel;
}

}  // namespace

OverheadSpread overhead_spread(const VirtualModeResult& mode) {
  OverheadSpread spread;
  spread.mean = mode.overhead();
  double sum = 0;
  double squares = 0;
  spread.least = mode.iterations.empty() ? 0 : 1e300;
  for (const VirtualIteration& one : mode.iterations) {
    const double overhead = one.computation_s > 0 ? one.total_s / one.computation_s - 1 : 0;
    sum += overhead;
    squares += overhead * overhead;
    spread.least = std::min(spread.least, overhead);
    spread.greatest = std::max(spread.greatest, overhead);
  }
  const auto n = static_cast<double>(mode.iterations.size());
  if (n > 1) spread.deviation = std::sqrt(std::max(squares - sum * sum / n, 0.0) / (n - 1));
  return spread;
}

std::string simulate_heading(const SimulatePlan& plan, double wall_s) {
  const std::size_t n_nodes = (plan.n_ranks + plan.ranks_per_node - 1) / plan.ranks_per_node;
  std::string text = fmt::format("Simulated: {} on {}, {}\n", counted(plan.n_ranks, "rank"),
                                 counted(n_nodes, "node"), counted(plan.n_iterations, "iteration"));
  text += wrapped(workload_text(plan), 2) + "\n";
  text += wrapped(fmt::format("storage: {}; encoding: {}", storage_text(plan),
                              plan.recording != nullptr ? "as recorded" : plan.encode_text),
                  2) +
          "\n";
  text += wrapped(fmt::format("in situ: planned by {}, writes balanced: {}; {}; seed {}",
                              scheduler_text(plan), balance_text(plan.run.node.balance),
                              plan.run.synchronized ? "iterations begin together"
                                                    : "ranks run independently",
                              plan.story.seed),
                  2) +
          "\n";
  if (wall_s > 0) text += fmt::format("computed in {}\n", seconds_text(wall_s));
  return text;
}

std::string simulate_table(const SimulatePlan& plan, const VirtualRunResult& result) {
  TextTable table(
      "output|>overhead|>+-|>an\niteration|>a "
      "rank:\nexposed|>\ndelayed|>no\nmemory|>late:\nmain?1|>\nI/"
      "O?1|>longest\ndelay?3|>\nwrites?2|>\nwritten?2");
  for (const VirtualModeResult& mode : result.modes) {
    const VirtualIteration mean = mean_of(mode);
    const OverheadSpread spread = overhead_spread(mode);
    const double n = rank_iterations(plan);
    table.add_row(
        {std::string(virtual_mode_name(mode.mode)), percent_text(spread.mean),
         percent_text(spread.deviation), time_text(mean.total_s), time_text(mean.exposed_s),
         time_text(mean.delay_s), mean.back_pressure_s > 0 ? time_text(mean.back_pressure_s) : "",
         fmt::format("{:.2g}", static_cast<double>(mean.n_delayed[0]) / n),
         fmt::format("{:.2g}", static_cast<double>(mean.n_delayed[1]) / n),
         time_text(mean.longest_delay_s),
         fmt::format("{:.1f}", static_cast<double>(mean.n_writes) / n),
         size_text(static_cast<std::uint64_t>(static_cast<double>(mean.written_bytes) / n))});
  }
  return table.text();
}

namespace {

nlohmann::ordered_json step_json(const VirtualIteration& iteration) {
  const VirtualStepCosts& step = iteration.step;
  return {{"agree_s", step.agree_s},   {"gather_s", step.gather_s},   {"index_s", step.index_s},
          {"commit_s", step.commit_s}, {"copy_s", step.copy_s},       {"claims_s", step.claims_s},
          {"beside", step.overlapped}, {"waited_s", iteration.step_s}};
}

}  // namespace

std::string step_table(const SimulatePlan& plan, const VirtualRunResult& result) {
  if (!plan.run.step_constants) return "";
  const auto ms = [](double seconds) {
    if (seconds <= 0) return std::string("-");
    const double value = seconds * 1e3;
    if (value < 1) return fmt::format("{:.2g}", value);
    return value < 99.95 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
  };
  TextTable table("a step, ms|>agree|>gather|>index|>commit|>copy|>claims|>waited|>share");
  for (const VirtualModeResult& mode : result.modes) {
    const VirtualStepCosts step = mean_of(mode).step;
    const auto metadata_ms = [&](double seconds) {
      return step.overlapped && seconds > 0 ? "(" + ms(seconds) + ")" : ms(seconds);
    };
    double waited_s = 0;
    for (const VirtualIteration& one : mode.iterations) waited_s += one.step_s;
    const auto n = static_cast<double>(std::max<std::size_t>(mode.iterations.size(), 1));
    table.add_row({std::string(virtual_mode_name(mode.mode)), ms(step.agree_s), ms(step.gather_s),
                   metadata_ms(step.index_s), metadata_ms(step.commit_s), ms(step.copy_s),
                   ms(step.claims_s), ms(waited_s / n),
                   percent_text(mode.computation_s > 0 ? waited_s / mode.computation_s : 0)});
  }
  const StepConstants& constants = *plan.run.step_constants;
  const bool known = plan.profile.step_measured;
  std::string constants_text = plan.profile_name + (known ? "" : " (typical values)");
  if (known && plan.profile.message_points.empty()) {
    constants_text += ", messages by typical values";
  }
  return "\n" + table.text() +
         "  share: of the computation, waited for; in brackets: beside it, by rank 0\n  " +
         wrapped(
             fmt::format("by {}: a message {:.3g} us and {:.3g} us a MB", constants_text,
                         constants.messages.message_s(0) * 1e6, constants.messages.byte_s * 1e12),
             4, 2) +
         "\n";
}

nlohmann::ordered_json simulate_settings_json(const SimulatePlan& plan) {
  const VirtualNoise& noise = plan.story.noise;
  return {{"ranks", plan.n_ranks},
          {"ranks_per_node", plan.ranks_per_node},
          {"iterations", plan.n_iterations},
          {"workload", workload_text(plan)},
          {"storage", storage_text(plan)},
          {"encoding", plan.recording != nullptr ? "as recorded" : plan.encode_text},
          {"scheduler", scheduler_text(plan)},
          {"balance", balance_text(plan.run.node.balance)},
          {"buffer_bytes", plan.run.node.buffer_bytes},
          {"memory_bytes", plan.run.node.memory_bytes},
          {"hold", plan.run.node.hold_copy ? "copy" : "promise"},
          {"encode_threads", plan.run.node.n_threads},
          {"forecast", plan.story.learned || plan.recording != nullptr ? "learned" : "given"},
          {"margin", plan.story.margin},
          {"io_collisions", plan.run.node.waits_for_writes ? "wait" : "share"},
          {"noise",
           {{"obstacles", noise.obstacles},
            {"ratio", noise.ratio},
            {"encode", noise.encode},
            {"write", noise.write}}},
          {"step_costs", plan.run.step_constants ? plan.profile_name : "off"},
          {"metadata", plan.run.step_shape.metadata_in_background ? "beside" : "within"},
          {"synchronized", plan.run.synchronized},
          {"seed", plan.story.seed}};
}

nlohmann::ordered_json simulate_json(const SimulatePlan& plan, const VirtualRunResult& result) {
  nlohmann::ordered_json document = document_of("simulate");
  document["simulated"] = true;
  document["settings"] = simulate_settings_json(plan);
  document["modes"] = nlohmann::ordered_json::array();
  for (const VirtualModeResult& mode : result.modes) {
    const OverheadSpread spread = overhead_spread(mode);
    nlohmann::ordered_json entry = {
        {"mode", virtual_mode_name(mode.mode)},   {"overhead", spread.mean},
        {"overhead_deviation", spread.deviation}, {"overhead_least", spread.least},
        {"overhead_greatest", spread.greatest},   {"run_s", mode.run_s},
        {"computation_s", mode.computation_s},    {"iterations", nlohmann::ordered_json::array()}};
    for (const VirtualIteration& one : mode.iterations) {
      entry["iterations"].push_back({{"computation_s", one.computation_s},
                                     {"total_s", one.total_s},
                                     {"makespan_s", one.makespan_s},
                                     {"exposed_s", one.exposed_s},
                                     {"delay_s", one.delay_s},
                                     {"back_pressure_s", one.back_pressure_s},
                                     {"planned_s", one.planned_s},
                                     {"longest_delay_s", one.longest_delay_s},
                                     {"late_main", one.n_delayed[0]},
                                     {"late_io", one.n_delayed[1]},
                                     {"encoded_chunks", one.n_encoded},
                                     {"written_chunks", one.n_written},
                                     {"writes", one.n_writes},
                                     {"encode_s", one.encode_s},
                                     {"write_s", one.write_s},
                                     {"written_bytes", one.written_bytes},
                                     {"peak_bytes", one.peak_bytes}});
      if (plan.run.step_constants) entry["iterations"].back()["step"] = step_json(one);
    }
    document["modes"].push_back(std::move(entry));
  }
  return document;
}

std::string simulate_csv(const SimulatePlan& plan, const VirtualRunResult& result) {
  std::string text =
      "simulated,ranks,mode,iteration,computation_s,total_s,exposed_s,delay_s,back_pressure_s,"
      "late_main,late_io,longest_delay_s,writes,written_bytes,agree_s,gather_s,index_s,commit_s,"
      "copy_s,claims_s,step_s\n";
  for (const VirtualModeResult& mode : result.modes) {
    for (std::size_t i = 0; i < mode.iterations.size(); ++i) {
      const VirtualIteration& one = mode.iterations[i];
      text +=
          fmt::format("yes,{},{},{},{:.9g},{:.9g},{:.9g},{:.9g},{:.9g},{},{},{:.9g},{},{}",
                      plan.n_ranks, virtual_mode_name(mode.mode), i, one.computation_s, one.total_s,
                      one.exposed_s, one.delay_s, one.back_pressure_s, one.n_delayed[0],
                      one.n_delayed[1], one.longest_delay_s, one.n_writes, one.written_bytes);
      const VirtualStepCosts& step = one.step;
      for (const double seconds : {step.agree_s, step.gather_s, step.index_s, step.commit_s,
                                   step.copy_s, step.claims_s, one.step_s}) {
        text += fmt::format(",{:.9g}", seconds);
      }
      text += "\n";
    }
  }
  return text;
}

chart::Figure simulate_chart(const SimulatePlan& plan, const VirtualRunResult& result) {
  chart::Figure figure;
  figure.title = fmt::format("Simulated: {}, {}, {}", counted(plan.n_ranks, "rank"),
                             plan.recording != nullptr ? "recorded" : plan.application.name,
                             storage_text(plan));
  chart::Panel panel;
  panel.title = "Overhead over the computation alone";
  panel.y = {.label = "mean of ranks, % of an iteration", .least = 0};
  chart::Bars bars;
  bars.segments = {{"exposed at the end", {}}, {"delays", {}}, {"waiting for memory", {}}};
  for (const VirtualModeResult& mode : result.modes) {
    const VirtualIteration mean = mean_of(mode);
    const auto n = static_cast<double>(mode.iterations.size());
    const double scale = mode.computation_s > 0 ? 100 * n / mode.computation_s : 0;
    bars.categories.emplace_back(virtual_mode_name(mode.mode));
    bars.segments[0].values.push_back(mean.exposed_s * scale);
    bars.segments[1].values.push_back(mean.delay_s * scale);
    bars.segments[2].values.push_back(mean.back_pressure_s * scale);
  }
  panel.bars = std::move(bars);
  figure.panels.push_back(std::move(panel));
  if (!result.events.empty()) {
    figure.panels.push_back(gantt_panel(result, std::min<std::size_t>(plan.ranks_per_node, 4)));
  }
  return figure;
}

std::vector<TraceEvent> simulate_trace(const VirtualRunResult& result) {
  std::vector<TraceEvent> trace;
  for (const VirtualEvent& event : result.events) {
    TraceEvent entry;
    switch (event.kind) {
      case VirtualEvent::Kind::obstacle: entry.kind = TraceEvent::Kind::application; break;
      case VirtualEvent::Kind::encode: entry.kind = TraceEvent::Kind::encode; break;
      case VirtualEvent::Kind::write: entry.kind = TraceEvent::Kind::write; break;
      // The application waits; the lane that delays it shows another event for this time.
      case VirtualEvent::Kind::delay: continue;
    }
    entry.rank = static_cast<std::int32_t>(event.rank);
    entry.lane = event.lane == Lane::io ? kIoLaneNumber : 0;
    if (event.jobs.size() == 1) {
      entry.chunk_index = static_cast<std::int64_t>(event.jobs.front().job);
    }
    entry.start_s = event.start_s;
    entry.end_s = event.end_s;
    entry.n_bytes = event.n_bytes;
    trace.push_back(entry);
  }
  return trace;
}

}  // namespace tailrace::cli
