// Series of points and lines, and the diagonal on which prediction and measurement agree.

#include <algorithm>
#include <cmath>

#include "chart/chart_panel.hpp"

namespace tailrace::chart {
namespace {

std::size_t n_points(const Series& series) { return std::min(series.x.size(), series.y.size()); }

std::size_t colour_of(const Panel& panel, std::size_t index) {
  return panel.series[index].colour.value_or(index);
}

bool shown(const Series& series, const Frame& frame, std::size_t i) {
  return frame.x.scale.can_show(series.x[i]) && frame.y.scale.can_show(series.y[i]);
}

/// The stretches of a series between values that cannot be shown.
std::vector<std::vector<Point>> stretches(const Series& series, const Frame& frame) {
  std::vector<std::vector<Point>> out(1);
  for (std::size_t i = 0; i < n_points(series); ++i) {
    if (shown(series, frame, i)) {
      out.back().push_back(frame.at(series.x[i], series.y[i]));
    } else if (!out.back().empty()) {
      out.emplace_back();
    }
  }
  return out;
}

/// The ends of y = x within the frame.
std::vector<Point> diagonal_of(const Frame& frame) {
  const double least = std::max(frame.x.scale.least, frame.y.scale.least);
  const double greatest = std::min(frame.x.scale.greatest, frame.y.scale.greatest);
  if (!(least < greatest)) return {};
  std::vector<Point> points;
  constexpr int n_parts = 32;  // It bends where only one of the axes is logarithmic.
  for (int i = 0; i <= n_parts; ++i) {
    const double part = static_cast<double>(i) / n_parts;
    const double value = frame.x.scale.logarithmic && least > 0
                             ? least * std::pow(greatest / least, part)
                             : least + (greatest - least) * part;
    points.push_back(frame.at(value, value));
  }
  return points;
}

/// Points every few units along a curve.
void add_along(std::vector<Point>& places, std::span<const Point> curve) {
  constexpr double distance = 4;
  for (std::size_t i = 0; i + 1 < curve.size(); ++i) {
    const double across = curve[i + 1].x - curve[i].x;
    const double down = curve[i + 1].y - curve[i].y;
    const auto n = static_cast<int>(std::hypot(across, down) / distance) + 1;
    for (int part = 0; part < n; ++part) {
      const double share = static_cast<double>(part) / n;
      places.push_back({curve[i].x + share * across, curve[i].y + share * down});
    }
  }
}

/// Thousands of points are drawn smaller and fainter, so that their density shows.
double radius_for(std::size_t n) { return n > 2000 ? 1.6 : n > 300 ? 2.3 : 3.2; }
double opacity_for(std::size_t n) { return n > 2000 ? 0.35 : n > 300 ? 0.55 : 0.85; }

}  // namespace

PanelAxes series_axes(const Panel& panel, const Rectangle& area) {
  DataRange x;
  DataRange y;
  const bool log_x = panel.x.logarithmic;
  const bool log_y = panel.y.logarithmic;
  for (const Series& series : panel.series) {
    for (std::size_t i = 0; i < n_points(series); ++i) {
      const double x_value = series.x[i];
      const double y_value = series.y[i];
      // A point counts as a whole: if one coordinate cannot be shown, neither widens an axis.
      if (!std::isfinite(x_value) || !std::isfinite(y_value)) continue;
      if ((log_x && x_value <= 0) || (log_y && y_value <= 0)) continue;
      extend(x, x_value, log_x);
      extend(y, y_value, log_y);
    }
  }
  PanelAxes axes;
  axes.empty = x.empty();
  if (panel.diagonal && log_x == log_y) {
    // Both axes show the same interval, so that the diagonal is one.
    x = {std::min(x.least, y.least), std::max(x.greatest, y.greatest)};
    y = x;
  }
  std::size_t n_across = n_labels_across(area.width);
  std::size_t n_down = n_labels_down(area.height);
  if (panel.diagonal) n_across = n_down = std::min(n_across, n_down);
  axes.x = numeric_axis(panel.x, x, n_across);
  axes.y = numeric_axis(panel.y, y, n_down);
  return axes;
}

std::vector<LegendEntry> series_legend(const Panel& panel) {
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < panel.series.size(); ++i) {
    const Series& series = panel.series[i];
    if (series.label.empty()) continue;
    entries.push_back({series.label, colour_of(panel, i), series.mark, series.dashed});
  }
  return entries;
}

std::vector<Point> series_places(const Panel& panel, const Frame& frame) {
  std::vector<Point> places;
  for (const Series& series : panel.series) {
    for (const std::vector<Point>& curve : stretches(series, frame)) {
      if (series.mark != Mark::points) add_along(places, curve);
      places.insert(places.end(), curve.begin(), curve.end());
    }
  }
  if (panel.diagonal) add_along(places, diagonal_of(frame));
  return places;
}

void draw_series(Canvas& canvas, const Panel& panel, const Frame& frame) {
  const Rectangle& plot = frame.plot;
  // A mark on the border stays whole.
  canvas.begin_clip({plot.x - 5, plot.y - 5, plot.width + 10, plot.height + 10});
  if (panel.diagonal) canvas.curve(diagonal_of(frame), {ink::axis, 1.2, true});
  for (const bool lines : {true, false}) {  // All marks over all lines.
    for (std::size_t i = 0; i < panel.series.size(); ++i) {
      const Series& series = panel.series[i];
      const std::size_t colour = colour_of(panel, i);
      for (const std::vector<Point>& curve : stretches(series, frame)) {
        if (lines && series.mark != Mark::points) {
          canvas.curve(curve, {palette_colour(colour), 2, series.dashed});
        }
        // A stretch of one point would be invisible as a line.
        if (!lines && (series.mark != Mark::line || curve.size() == 1)) {
          for (const Point& point : curve) {
            canvas.mark(point, radius_for(n_points(series)), colour, opacity_for(n_points(series)));
          }
        }
      }
    }
  }
  canvas.end_clip();
}

}  // namespace tailrace::chart
