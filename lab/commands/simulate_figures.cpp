// Figures 3, 7, 8 and 11; each is a few loops over run_plan().

#include "simulate.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <functional>

#include "report/text_table.hpp"

namespace tailrace::cli {
namespace {

/// Output mode with its label in the figures.
struct Way {
  VirtualMode mode;
  const char* label;
  bool dashed;
};
constexpr Way ways[] = {
    {VirtualMode::sync_raw, "baseline: sync, not compressed", false},
    {VirtualMode::sync_encoded, "sync, compressed", true},
    {VirtualMode::async_raw, "asynchronous, not compressed", false},
    {VirtualMode::async_encoded, "asynchronous, compressed", true},
    {VirtualMode::in_situ, "in situ (ours)", false},
};

/// Add one series per mode, evaluated at each of `x`; `vary` makes the plan of one point.
Status add_ways(FigurePanel& panel, const std::vector<double>& x,
                const std::function<SimulatePlan(double)>& vary) {
  for (const Way& way : ways) panel.series.push_back({way.label, {}, {}, {}, way.dashed});
  for (const double at : x) {
    SimulatePlan plan = vary(at);
    plan.run.modes.clear();
    for (const Way& way : ways) plan.run.modes.push_back(way.mode);
    TAILRACE_TAKE(const VirtualRunResult result, run_plan(plan));
    for (std::size_t m = 0; m < result.modes.size(); ++m) {
      const OverheadSpread spread = overhead_spread(result.modes[m]);
      panel.series[m].x.push_back(at);
      panel.series[m].y.push_back(100 * spread.mean);
      panel.series[m].deviation.push_back(100 * spread.deviation);
    }
  }
  return Status();
}

FigurePanel overhead_panel(const std::string& title, const std::string& x_label, bool logarithmic) {
  return {title, x_label, "overhead over computation (%)", logarithmic, true, {}};
}

/// Relative improvement by balancing, as a function of the difference of a node's ratios.
Status figure_3(const SimulatePlan& plan, PaperFigure& figure) {
  figure.title = "Simulated: writes balanced within a node (figure 3)";
  for (const auto& [rule, name] :
       {std::pair{BalanceRule::paper, "the paper's rule"}, {BalanceRule::best, "ours"}}) {
    FigurePanel panel{std::string("Time saved by ") + name,
                      "largest difference of a node's ratios",
                      "of an iteration (%)",
                      false,
                      false,
                      {}};
    for (std::size_t on_node = 4; on_node <= 8; ++on_node) {
      FigureSeries series{fmt::format("{} ranks a node", on_node), {}, {}, {}, false};
      for (double difference = 0; difference <= 20; difference += 2) {
        SimulatePlan point = plan;
        point.ranks_per_node = on_node;
        point.n_ranks = on_node * std::max<std::size_t>(plan.n_ranks / 4, 1);
        point.application.ratio_difference = difference;
        point.run.modes = {VirtualMode::in_situ};
        point.run.node.balance = BalanceRule::off;
        TAILRACE_TAKE(const VirtualRunResult off, run_plan(point));
        point.run.node.balance = rule;
        TAILRACE_TAKE(const VirtualRunResult on, run_plan(point));
        series.x.push_back(difference);
        series.y.push_back(100 * (1 - on.modes[0].run_s / off.modes[0].run_s));
        series.deviation.push_back(0);
      }
      panel.series.push_back(std::move(series));
    }
    figure.panels.push_back(std::move(panel));
    SimulatePlan shown = plan;
    shown.run.node.balance = rule;
    figure.settings.push_back(simulate_heading(shown, 0));
  }
  return Status();
}

Status figure_7(const SimulatePlan& plan, PaperFigure& figure) {
  figure.title = "Simulated: overhead by ratio (figure 7)";
  FigurePanel panel =
      overhead_panel(plan.application.name + ": all ways to output", "mean ratio", true);
  const double relative = plan.application.ratio_difference / plan.application.mean_ratio;
  TAILRACE_TRY(add_ways(panel, {2, 4, 8, 16, 32, 64, 128}, [&](double ratio) {
    SimulatePlan point = plan;
    point.application.mean_ratio = ratio;
    point.application.ratio_difference = relative * ratio;
    return point;
  }));
  figure.panels.push_back(std::move(panel));
  figure.settings.push_back(simulate_heading(plan, 0));
  return Status();
}

Status figure_8(const SimulatePlan& plan, PaperFigure& figure) {
  figure.title = "Simulated: overhead by the spread of ratios (figure 8)";
  const std::vector<double> differences = {0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20};
  const auto vary = [&](double difference) {
    SimulatePlan point = plan;
    point.application.ratio_difference = difference;
    return point;
  };
  FigurePanel panel = overhead_panel(plan.application.name + ": all ways to output",
                                     "largest difference of a node's ratios", false);
  TAILRACE_TRY(add_ways(panel, differences, vary));
  figure.panels.push_back(std::move(panel));
  figure.settings.push_back(simulate_heading(plan, 0));
  FigurePanel rules{"In situ alone, by the rule of balancing",
                    "largest difference of a node's ratios",
                    "overhead over computation (%)",
                    false,
                    false,
                    {}};
  for (const auto& [rule, name] : {std::pair{BalanceRule::off, "not balanced"},
                                   {BalanceRule::paper, "the paper's rule"},
                                   {BalanceRule::best, "ours"}}) {
    FigureSeries series{name, differences, {}, {}, false};
    for (const double difference : differences) {
      SimulatePlan point = vary(difference);
      point.run.node.balance = rule;
      point.run.modes = {VirtualMode::in_situ};
      TAILRACE_TAKE(const VirtualRunResult result, run_plan(point));
      const OverheadSpread spread = overhead_spread(result.modes[0]);
      series.y.push_back(100 * spread.mean);
      series.deviation.push_back(100 * spread.deviation);
    }
    rules.series.push_back(std::move(series));
  }
  figure.panels.push_back(std::move(rules));
  figure.settings.push_back(simulate_heading(plan, 0));
  return Status();
}

/// Weak scaling of both applications (5.4.2), and strong scaling of the first, which the paper does
/// not show. The strong-scaling problem is that of 4096 ranks; on n ranks, an iteration takes
/// 4096/n of its time there.
Status figure_11(const SimulatePlan& plan, PaperFigure& figure) {
  figure.title = "Simulated: scaling (figure 11)";
  const std::vector<double> weak = {4, 16, 64, 256, 1024, 4096, 8192, 16384, 32768};
  for (const char* name : {"nyx", "warpx"}) {
    SimulatePlan base = plan;
    base.application = *virtual_application(name);
    FigurePanel panel = overhead_panel(fmt::format("{}, weak scaling", name), "ranks", true);
    TAILRACE_TRY(add_ways(panel, weak, [&](double n_ranks) {
      SimulatePlan point = base;
      point.n_ranks = static_cast<std::size_t>(n_ranks);
      return point;
    }));
    figure.panels.push_back(std::move(panel));
    figure.settings.push_back(simulate_heading(base, 0));
  }
  SimulatePlan base = plan;
  base.application = *virtual_application("nyx");
  constexpr double whole_ranks = 4096;
  FigurePanel panel = overhead_panel("nyx, strong scaling: 4096\u00b3 cells", "ranks", true);
  TAILRACE_TRY(add_ways(panel, {512, 1024, 2048, 4096, 8192, 16384, 32768}, [&](double n_ranks) {
    SimulatePlan point = base;
    const double share = whole_ranks / n_ranks;
    point.n_ranks = static_cast<std::size_t>(n_ranks);
    point.application.iteration_s *= share;
    point.application.field_bytes =
        static_cast<std::uint64_t>(static_cast<double>(base.application.field_bytes) * share);
    return point;
  }));
  figure.panels.push_back(std::move(panel));
  figure.settings.push_back(simulate_heading(base, 0));
  return Status();
}

/// Storage of a figure, unless the user sets it: the storage on which the project measures. Scaling
/// uses the paper's value for Summit ("at best 1 TB/s", section 1).
void choose_storage(unsigned number, SimulatePlan& plan) {
  if (plan.bandwidth > 0 || !plan.profile.built_in) return;
  plan.bandwidth = number == 11 ? 100e6 : 25e6;
  plan.total_bandwidth = number == 11 ? 1e12 : 0;
}

}  // namespace

Result<PaperFigure> compute_figure(unsigned number, const SimulatePlan& requested) {
  if (requested.recording != nullptr) {
    return Status(Code::invalid_argument,
                  "--figure: needs a generated application, not a recording");
  }
  SimulatePlan plan = requested;
  choose_storage(number, plan);
  PaperFigure figure;
  figure.number = number;
  switch (number) {
    case 3: TAILRACE_TRY(figure_3(plan, figure)); return figure;
    case 7: TAILRACE_TRY(figure_7(plan, figure)); return figure;
    case 8: TAILRACE_TRY(figure_8(plan, figure)); return figure;
    case 11: TAILRACE_TRY(figure_11(plan, figure)); return figure;
    default:
      return Status(Code::invalid_argument,
                    fmt::format("--figure {}: must be 3, 7, 8 or 11", number));
  }
}

namespace {

/// A heading broken at the space nearest to its middle.
std::string in_two_lines(std::string heading) {
  const std::size_t space = heading.find(' ', heading.size() / 2);
  if (space != std::string::npos) heading[space] = '\n';
  return heading;
}

}  // namespace

std::string figure_table(const PaperFigure& figure) {
  std::string text = wrapped(figure.title, 2) + "\n";
  std::string last_settings;
  for (std::size_t p = 0; p < figure.panels.size(); ++p) {
    const FigurePanel& panel = figure.panels[p];
    if (figure.settings[p] != last_settings) text += "\n" + figure.settings[p];
    last_settings = figure.settings[p];
    text += "\n" + wrapped(panel.title + "; " + panel.y_label, 2) + "\n";
    std::vector<TableColumn> columns = {
        {.heading = in_two_lines(panel.x_label), .least_width = 12}};
    for (const double x : panel.series.front().x) {
      columns.push_back({.heading = fmt::format("{:g}", x), .right = true});
    }
    TextTable table(std::move(columns));
    for (const FigureSeries& series : panel.series) {
      std::vector<std::string> cells = {series.label};
      for (const double y : series.y) cells.push_back(fmt::format("{:.3g}", y));
      table.add_row(std::move(cells));
    }
    text += table.text();
  }
  return text;
}

std::string figure_csv(const PaperFigure& figure) {
  std::string text = "simulated,figure,panel,series,x_label,x,percent,deviation_over_iterations\n";
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      for (std::size_t i = 0; i < series.x.size(); ++i) {
        text += fmt::format("yes,{},\"{}\",\"{}\",\"{}\",{:g},{:.6g},{:.6g}\n", figure.number,
                            panel.title, series.label, panel.x_label, series.x[i], series.y[i],
                            series.deviation[i]);
      }
    }
  }
  return text;
}

namespace {

/// Text without the line breaks of wrapped(), whose continuation lines are indented.
std::string unbroken(std::string text) {
  for (std::size_t at = 0; (at = text.find("\n  ", at)) != std::string::npos;) {
    text.replace(at, 3, " ");
  }
  return text;
}

}  // namespace

nlohmann::ordered_json figure_json(const PaperFigure& figure) {
  nlohmann::ordered_json document = document_of("simulate");
  document["simulated"] = true;
  document["figure"] = figure.number;
  document["title"] = figure.title;
  document["panels"] = nlohmann::ordered_json::array();
  for (std::size_t p = 0; p < figure.panels.size(); ++p) {
    const FigurePanel& panel = figure.panels[p];
    nlohmann::ordered_json entry = {{"title", panel.title},
                                    {"settings", unbroken(figure.settings[p])},
                                    {"x", panel.x_label},
                                    {"y", panel.y_label},
                                    {"series", nlohmann::ordered_json::array()}};
    for (const FigureSeries& series : panel.series) {
      entry["series"].push_back({{"label", series.label},
                                 {"x", series.x},
                                 {"percent", series.y},
                                 {"deviation", series.deviation}});
    }
    document["panels"].push_back(std::move(entry));
  }
  return document;
}

chart::Figure figure_chart(const PaperFigure& figure) {
  chart::Figure drawing;
  drawing.title = figure.title;
  double least = 0;
  double greatest = 0;
  for (const FigurePanel& panel : figure.panels) {
    for (const FigureSeries& series : panel.series) {
      for (const double y : series.y) {
        least = std::min(least, y);
        greatest = std::max(greatest, y);
      }
    }
  }
  for (const FigurePanel& panel : figure.panels) {
    chart::Panel& shown = drawing.panels.emplace_back();
    shown.title = panel.title;
    shown.x = {.label = panel.x_label, .logarithmic = panel.x_logarithmic};
    shown.y = {.label = panel.y_label, .logarithmic = panel.y_logarithmic};
    if (!panel.y_logarithmic && least > -1) shown.y.least = 0;
    // Both panels, one per rule, share a scale.
    if (figure.number == 3) shown.y.greatest = 10 * std::ceil(greatest / 10);
    for (const FigureSeries& series : panel.series) {
      shown.series.push_back({.label = series.label,
                              .x = series.x,
                              .y = series.y,
                              .mark = chart::Mark::line_and_points,
                              .dashed = series.dashed});
    }
  }
  drawing.n_columns = std::min<std::size_t>(figure.panels.size(), 2);
  return drawing;
}

}  // namespace tailrace::cli
