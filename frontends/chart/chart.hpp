// Chart: the plots of Tailrace's commands and reports, as SVG or PNG.
//
// A Figure is panels in a grid; a Panel has axes, series, bars and a legend. Drawn by cairo, so
// that a plot needs no Python where simulations run. Policy-free: callers hand over numbers and
// words. Built without cairo, write_figure() says so by name.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace::chart {

enum class Mark : unsigned char { points, line, line_and_points };

/// One set of points; `label` empty: not in the legend.
struct Series {
  std::string label;
  std::vector<double> x;
  std::vector<double> y;
  Mark mark = Mark::points;
  bool dashed = false;
  std::optional<std::size_t> colour{};  ///< Index into the palette; nothing: the next one.
};

/// A stack of bar segments per category: `segments[s].values[c]`.
struct BarSegment {
  std::string label;
  std::vector<double> values;
};
struct Bars {
  std::vector<std::string> categories;
  std::vector<BarSegment> segments;
};

/// A horizontal interval on a row (Gantt charts): row r, from start to end.
struct Interval {
  std::size_t row = 0;
  double start = 0;
  double end = 0;
  std::size_t colour = 0;
  std::string label{};  ///< Drawn inside where there is room.
};
/// A moment on all rows of a Gantt chart: a dashed line.
struct TimeMark {
  double at = 0;
  std::size_t colour = 0;
};
struct Gantt {
  std::vector<std::string> rows;
  std::vector<Interval> intervals;
  std::vector<std::string> colours{};  ///< What palette colours 0, 1... mean, for the legend.
  std::vector<TimeMark> marks{};
};

struct Axis {
  std::string label;  ///< With its unit: "bytes written per rank (MB)".
  bool logarithmic = false;
  std::optional<double> least{};  ///< Nothing: by the data.
  std::optional<double> greatest{};
};

struct Panel {
  std::string title;
  Axis x;
  Axis y;
  std::vector<Series> series;
  std::optional<Bars> bars;    ///< Instead of series.
  std::optional<Gantt> gantt;  ///< Instead of series.
  bool diagonal = false;       ///< Draw y = x, for predicted against measured.
};

struct Figure {
  std::string title;
  std::vector<Panel> panels;
  std::size_t n_columns = 2;
  double panel_width = 480;  ///< Points.
  double panel_height = 340;
};

/// Write `figure` to `path`; ".svg" or ".png" (two pixels a point) by its ending.
/// What cannot be shown (NaN, infinite, not positive on a logarithmic axis) leaves a gap.
/// Not collective. Thread-safe.
/// @error invalid_argument  another ending.  @error unsupported  built without cairo.
/// @error not_found  no such folder.  @error io_error, no_space, out_of_memory
Status write_figure(const Figure& figure, const std::string& path);

/// The figure as an <svg> element, for a page that holds it inline; several may share a page.
/// Not collective. Thread-safe. @error unsupported, out_of_memory
Result<std::string> figure_svg(const Figure& figure);

}  // namespace tailrace::chart
