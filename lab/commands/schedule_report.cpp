// Tables, JSON and charts of plans.

#include "schedule.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>

#include "cli_common.hpp"
#include "report/text_table.hpp"

namespace tailrace::cli {
namespace {

/// Seconds, with enough decimals to distinguish times within the instance.
std::string instance_seconds(double seconds) {
  return fmt::format("{:.{}f} s", seconds, seconds < 1 ? 6 : (seconds < 100 ? 4 : 2));
}

/// Short form for titles: "12 s", "3.2407 s".
std::string brief_seconds(double seconds) { return fmt::format("{:.5g} s", seconds); }

/// "0.022 ms", "652 ms", "2.40 s".
std::string planning_time(double seconds) {
  if (seconds >= 0.9995) return fmt::format("{:.2f} s", seconds);
  return fmt::format("{:.{}f} ms", 1e3 * seconds, seconds < 0.1 ? 3 : 0);
}

std::string percent(double share) { return fmt::format("{:.2f} %", 100 * share); }

/// Time by which the iteration grows; "0" if the iteration hides the output.
std::string beyond(double seconds) { return seconds > 0 ? instance_seconds(seconds) : "0"; }

std::string heading(const ScheduleReport& report) {
  const FlowShop& shop = report.instance.shop;
  double encode_s = 0;
  double write_s = 0;
  for (const JobCost& job : shop.jobs) {
    encode_s += job.encode_s;
    write_s += job.write_s;
  }
  std::string text =
      fmt::format("{}: {}, encode {} and write {} in all; {} on the main lane, {} on the I/O lane",
                  report.source, counted(shop.jobs.size(), "job"), instance_seconds(encode_s),
                  instance_seconds(write_s), counted(shop.obstacles.main.size(), "obstacle"),
                  counted(shop.obstacles.io.size(), "obstacle"));
  text = wrapped(text, 2) + "\n";
  std::string second = fmt::format("no plan ends before {}", instance_seconds(report.best_bound_s));
  if (report.best_bound_source != "lower bound") {
    second += fmt::format(" (proven by {}; lower bound {})", report.best_bound_source,
                          instance_seconds(report.lower_bound_s));
  }
  if (shop.iteration_s > 0) {
    second += fmt::format("; the iteration takes {}", instance_seconds(shop.iteration_s));
  }
  return text + wrapped(second, 2) + "\n\n";
}

// --- the chart ----------------------------------------------------------------------------------

// Palette colours that match the paper's figure: encodes red, writes blue, obstacles yellow on the
// main thread and green on the background thread.
constexpr std::size_t kWriteColour = 0;
constexpr std::size_t kEncodeColour = 1;
constexpr std::size_t kIoObstacleColour = 2;
constexpr std::size_t kMainObstacleColour = 7;
constexpr std::size_t kMarkColour = 6;

constexpr std::size_t kMostJobsSideBySide = 16;
constexpr std::size_t kMainRow = 0;
constexpr std::size_t kIoRow = 1;

chart::Panel lanes_panel(const ScheduleReport& report, double until_s) {
  chart::Panel panel;
  panel.x = {.label = "time (s)", .least = 0, .greatest = until_s};
  panel.gantt = chart::Gantt{.rows = {"main thread", "background"}, .intervals = {}};
  const LaneObstacles& obstacles = report.instance.shop.obstacles;
  const auto add = [&](const std::vector<Obstacle>& lane, std::size_t row, std::size_t colour) {
    for (const Obstacle& obstacle : lane) {
      if (obstacle.start_s >= until_s) continue;
      panel.gantt->intervals.push_back(
          {row, obstacle.start_s, std::min(obstacle.end_s, until_s), colour});
    }
  };
  add(obstacles.main, kMainRow, kMainObstacleColour);
  add(obstacles.io, kIoRow, kIoObstacleColour);
  return panel;
}

/// Panel of the obstacles, which also holds the legend of all panels.
chart::Panel obstacles_panel(const ScheduleReport& report, double until_s) {
  chart::Panel panel = lanes_panel(report, until_s);
  panel.title = "Obstacles";
  std::vector<std::string>& colours = panel.gantt->colours;
  colours.resize(kMainObstacleColour + 1);
  colours[kEncodeColour] = "encode";
  colours[kWriteColour] = "write";
  colours[kMainObstacleColour] = "compute";
  colours[kIoObstacleColour] = "communicate";
  return panel;
}

/// Panel of the jobs side by side; both operations of a job start at the same position.
chart::Panel jobs_panel(const ScheduleReport& report) {
  const FlowShop& shop = report.instance.shop;
  chart::Panel panel;
  panel.title = counted(shop.jobs.size(), "job");
  panel.gantt = chart::Gantt{.rows = {"encode", "write"}, .intervals = {}};
  double at = 0;
  for (std::size_t j = 0; j < shop.jobs.size(); ++j) {
    const JobCost& job = shop.jobs[j];
    const std::string name = report.instance.name_of(j);
    panel.gantt->intervals.push_back({kMainRow, at, at + job.encode_s, kEncodeColour, name});
    panel.gantt->intervals.push_back({kIoRow, at, at + job.write_s, kWriteColour, name});
    at += std::max(job.encode_s, job.write_s);
  }
  panel.x = {.label = "lengths (s)", .least = 0, .greatest = at};
  return panel;
}

chart::Panel plan_panel(const ScheduleReport& report, const CheckedPlan& checked, double until_s) {
  const FlowShop& shop = report.instance.shop;
  const FlowShopPlan& plan = *checked.plan;
  chart::Panel panel = lanes_panel(report, until_s);
  const double gap = report.gap(plan.makespan_s);
  panel.title =
      fmt::format("{}: {}, {}", checked.scheduler, brief_seconds(plan.makespan_s),
                  report.optimal(plan.makespan_s) ? "optimal" : percent(gap) + " above the bound");
  if (!checked.problem.empty()) panel.title += ", INVALID";
  for (std::size_t j = 0; j < shop.jobs.size(); ++j) {
    const std::string name = report.instance.name_of(j);
    const double encode_s = plan.encode_start_s[j];
    const double write_s = plan.write_start_s[j];
    panel.gantt->intervals.push_back(
        {kMainRow, encode_s, encode_s + shop.jobs[j].encode_s, kEncodeColour, name});
    panel.gantt->intervals.push_back(
        {kIoRow, write_s, write_s + shop.jobs[j].write_s, kWriteColour, name});
  }
  panel.gantt->marks.push_back({report.best_bound_s, kMarkColour});
  return panel;
}

/// End of the time axes: the longest plan, the bound or the iteration, whichever is latest.
double axis_end_s(const ScheduleReport& report) {
  double end_s = std::max(report.best_bound_s, report.instance.shop.iteration_s);
  for (const CheckedPlan& checked : report.plans) {
    if (checked.plan) end_s = std::max(end_s, checked.plan->makespan_s);
  }
  return end_s > 0 ? end_s : 1;
}

}  // namespace

double ScheduleReport::gap(double makespan_s) const {
  return best_bound_s > 0 ? makespan_s / best_bound_s - 1 : 0;
}

bool ScheduleReport::optimal(double makespan_s) const {
  return makespan_s <= best_bound_s * (1 + 1e-9) + 1e-12;
}

std::string schedule_table(const ScheduleReport& report) {
  const double iteration_s = report.instance.shop.iteration_s;
  TextTable table(
      "scheduler|>makespan|>above\nthe bound|>beyond the\niteration|>time\nto plan|\nvalid|/12");
  std::string problems;
  for (const CheckedPlan& checked : report.plans) {
    const std::string plan_time = planning_time(checked.plan_s);
    if (!checked.plan) {
      table.add_row({checked.scheduler, "-", "-", "", plan_time, "-", "no plan within the limit"});
      continue;
    }
    const double makespan_s = checked.plan->makespan_s;
    table.add_row({checked.scheduler, instance_seconds(makespan_s), percent(report.gap(makespan_s)),
                   iteration_s > 0 ? beyond(makespan_s - iteration_s) : "", plan_time,
                   checked.problem.empty() ? "yes" : "NO",
                   report.optimal(makespan_s) ? "optimal" : ""});
    if (!checked.problem.empty()) {
      problems += wrapped(checked.scheduler + ": " + checked.problem, 2) + "\n";
    }
  }
  return heading(report) + table.text() + problems;
}

nlohmann::ordered_json schedule_json(const ScheduleReport& report) {
  nlohmann::ordered_json document = document_of("schedule");
  document["source"] = report.source;
  document["instance"] = schedule_instance_json(report.instance);
  document["lower_bound_s"] = report.lower_bound_s;
  document["best_bound_s"] = report.best_bound_s;
  document["best_bound_source"] = report.best_bound_source;
  document["plans"] = nlohmann::ordered_json::array();
  for (const CheckedPlan& checked : report.plans) {
    nlohmann::ordered_json entry = {{"scheduler", checked.scheduler}, {"plan_s", checked.plan_s}};
    if (!checked.solver.empty()) {
      entry["solver"] = checked.solver;
      entry["solver_bound_s"] = checked.solver_bound_s;
    }
    if (checked.plan) {
      const FlowShopPlan& plan = *checked.plan;
      entry["makespan_s"] = plan.makespan_s;
      entry["gap"] = report.gap(plan.makespan_s);
      entry["optimal"] = report.optimal(plan.makespan_s);
      entry["valid"] = checked.problem.empty();
      if (!checked.problem.empty()) entry["problem"] = checked.problem;
      entry["encode_order"] = plan.encode_order;
      entry["write_order"] = plan.write_order;
      entry["encode_start_s"] = plan.encode_start_s;
      entry["write_start_s"] = plan.write_start_s;
    } else {
      entry["makespan_s"] = nullptr;
    }
    document["plans"].push_back(std::move(entry));
  }
  return document;
}

chart::Figure schedule_figure(const ScheduleReport& report) {
  const bool side_by_side = report.instance.shop.jobs.size() <= kMostJobsSideBySide;
  constexpr double room = 1.02;  // Keep the last write off the frame.
  const double until_s = axis_end_s(report) * room;
  chart::Figure figure;
  figure.title = fmt::format("{}: {}, no plan ends before {} (dashed)", report.source,
                             counted(report.instance.shop.jobs.size(), "job"),
                             brief_seconds(report.best_bound_s));
  figure.n_columns = side_by_side ? 2 : 1;
  figure.panel_width = side_by_side ? 520 : 1120;
  figure.panel_height = 158;
  figure.panels.push_back(obstacles_panel(report, until_s));
  if (side_by_side) figure.panels.push_back(jobs_panel(report));
  for (const CheckedPlan& checked : report.plans) {
    if (checked.plan) figure.panels.push_back(plan_panel(report, checked, until_s));
  }
  return figure;
}

}  // namespace tailrace::cli
