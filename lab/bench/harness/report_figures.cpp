// Conversion of rows to series and bars.

#include "report_figures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace tailrace::bench {
namespace {

constexpr double kMega = 1e6;

std::string setting_title(const SweepPoint& point) {
  const std::string bandwidth = bandwidth_text(point.setting.bandwidth);
  return fmt::format("{}, W {}", error_bound_text(point.setting.bound), bandwidth);
}

/// Row name without "tailrace-"; the heading contains the bound.
std::string short_name(const std::string& method) {
  return method.starts_with("tailrace-") ? method.substr(9) : method;
}

chart::Panel bars_panel(const SweepPoint& point) {
  chart::Panel panel;
  panel.title = setting_title(point);
  panel.x.label = "";
  panel.y.label = "seconds";
  chart::Bars bars;
  bars.segments = {{"encode", {}}, {"exposed write", {}}, {"other", {}}, {"not told apart", {}}};
  for (const Row& row : point.rows) {
    bars.categories.push_back(short_name(row.method));
    const double total_s = row.median_s();
    double encode_s = 0;
    double exposed_s = 0;
    if (row.has_lanes) {
      encode_s = std::min(row.details.encode_s, total_s);
      exposed_s =
          std::clamp(row.details.makespan_s - row.details.encode_s, 0.0, total_s - encode_s);
    }
    const double other_s = row.has_lanes ? total_s - encode_s - exposed_s : 0;
    const double whole_s = row.has_lanes ? 0 : total_s;
    const double parts[] = {encode_s, exposed_s, other_s, whole_s};
    for (std::size_t s = 0; s < bars.segments.size(); ++s) {
      bars.segments[s].values.push_back(parts[s]);
    }
  }
  // Drop segments without values, which would only clutter the legend.
  std::erase_if(bars.segments, [](const chart::BarSegment& segment) {
    return std::all_of(segment.values.begin(), segment.values.end(),
                       [](double value) { return value <= 0; });
  });
  panel.bars = std::move(bars);
  return panel;
}

}  // namespace

chart::Figure bars_figure(std::span<const SweepPoint> points) {
  chart::Figure figure;
  figure.n_columns = 1;
  figure.panel_width = 960;
  for (const SweepPoint& point : points) figure.panels.push_back(bars_panel(point));
  return figure;
}

chart::Figure bandwidth_figure(std::span<const SweepPoint> points) {
  chart::Figure figure;
  figure.n_columns = 1;
  figure.panel_width = 960;
  chart::Panel panel;
  panel.title = fmt::format("Time over storage bandwidth, {}",
                            error_bound_text(points.front().setting.bound));
  panel.x = {"storage bandwidth W of all ranks (MB/s)", true, {}, {}};
  panel.y = {"median seconds", true, {}, {}};
  for (std::size_t r = 0; r < points.front().rows.size(); ++r) {
    chart::Series series;
    series.label = short_name(points.front().rows[r].method);
    series.mark = chart::Mark::line_and_points;
    std::vector<std::pair<double, double>> line;
    for (const SweepPoint& point : points) {
      if (point.bandwidth_bytes_per_s > 0) {
        line.emplace_back(point.bandwidth_bytes_per_s / kMega, point.rows[r].median_s());
      }
    }
    std::sort(line.begin(), line.end());
    for (const auto& [x, y] : line) {
      series.x.push_back(x);
      series.y.push_back(y);
    }
    panel.series.push_back(std::move(series));
  }
  figure.panels.push_back(std::move(panel));
  return figure;
}

chart::Figure prediction_figure(const PredictionCheck& check, const Workload& work) {
  chart::Panel sizes;
  sizes.title = fmt::format("Encoded size of each chunk, {}", error_bound_text(check.bound));
  sizes.x = {"predicted (kB)", true, {}, {}};
  sizes.y = {"encoded (kB)", true, {}, {}};
  sizes.diagonal = true;
  chart::Panel times;
  times.title = fmt::format("Encode time of each chunk, {}", error_bound_text(check.bound));
  times.x = {"predicted (ms)", true, {}, {}};
  times.y = {"measured, thread CPU time (ms)", true, {}, {}};
  times.diagonal = true;
  for (std::size_t f = 0; f < work.fields.size(); ++f) {
    const std::string& path = work.fields[f].path;
    chart::Series size{path.substr(path.rfind('/') + 1), {}, {}, chart::Mark::points, false, f};
    chart::Series time = size;
    for (const ChunkCheck& chunk : check.chunks) {
      if (chunk.field != f) continue;
      size.x.push_back(chunk.predicted_bytes / 1e3);
      size.y.push_back(chunk.encoded_bytes / 1e3);
      if (chunk.predicted_encode_s <= 0) continue;
      time.x.push_back(chunk.predicted_encode_s * 1e3);
      time.y.push_back(chunk.encode_s * 1e3);
    }
    sizes.series.push_back(std::move(size));
    if (!time.x.empty()) times.series.push_back(std::move(time));
  }
  chart::Figure figure;
  figure.panels.push_back(std::move(sizes));
  if (!times.series.empty()) figure.panels.push_back(std::move(times));
  return figure;
}

chart::Figure step_figure(std::span<const SweepPoint> points) {
  chart::Panel panel;
  panel.title = "Time of a step, model against measured";
  panel.x = {"model (s)", true, {}, {}};
  panel.y = {"measured, median (s)", true, {}, {}};
  panel.diagonal = true;
  std::map<std::string, chart::Series> by_method;
  for (const SweepPoint& point : points) {
    for (const Row& row : point.rows) {
      if (row.model_s <= 0) continue;
      chart::Series& series = by_method[row.method];
      series.label = short_name(row.method);
      series.x.push_back(row.model_s);
      series.y.push_back(row.median_s());
    }
  }
  for (auto& [name, series] : by_method) panel.series.push_back(std::move(series));
  chart::Figure figure;
  if (!panel.series.empty()) figure.panels.push_back(std::move(panel));
  return figure;
}

chart::Figure space_figure(const std::vector<SpaceRow>& rows) {
  chart::Panel over;
  over.title = "Overhead and overflow over the space kept";
  over.x = {"bytes reserved over bytes predicted", false, {}, {}};
  over.y = {"percent", false, 0.0, {}};
  chart::Panel trade;
  trade.title = "What space buys";
  trade.x = {"chunks that overflow (percent)", false, 0.0, {}};
  trade.y = {"storage overhead (percent of encoded bytes)", false, 0.0, {}};
  std::size_t colour = 0;
  for (const char* layout :
       {"predictive", "arena", "predictive, default", "arena, default", "claimed"}) {
    chart::Series overhead{fmt::format("{}: overhead", layout), {},    {},
                           chart::Mark::line_and_points,        false, colour};
    chart::Series overflow = overhead;
    overflow.label = fmt::format("{}: overflow", layout);
    overflow.dashed = true;
    chart::Series both = overhead;
    both.label = layout;
    for (const SpaceRow& row : rows) {
      if (row.layout != layout) continue;
      both.x.push_back(100 * row.overflow_share);
      both.y.push_back(100 * row.overhead_share);
      if (row.space_ratio <= 0) continue;
      for (chart::Series* series : {&overhead, &overflow}) series->x.push_back(row.space_ratio);
      overhead.y.push_back(100 * row.overhead_share);
      overflow.y.push_back(100 * row.overflow_share);
    }
    ++colour;
    if (both.x.empty()) continue;
    trade.series.push_back(std::move(both));
    if (overhead.x.empty()) continue;
    over.series.push_back(std::move(overhead));
    over.series.push_back(std::move(overflow));
  }
  chart::Figure figure;
  figure.panels = {std::move(over), std::move(trade)};
  return figure;
}

}  // namespace tailrace::bench
