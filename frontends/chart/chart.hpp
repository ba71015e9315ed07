// Chart: the plots of Tailrace's commands and reports, as SVG or PNG.
//
// A Figure is panels in a grid; a Panel has axes, series, bars and a legend. Cairo draws the
// figures, so that a plot needs no Python where simulations run. The library holds no policy:
// callers supply numbers and text. In a build without cairo, write_figure() returns unsupported.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace::chart {

enum class Mark : unsigned char { points, line, line_and_points };

/// One set of points. A series with an empty `label` is not in the legend.
struct Series {
  std::string label;
  std::vector<double> x;
  std::vector<double> y;
  Mark mark = Mark::points;
  bool dashed = false;
  std::optional<std::size_t> colour{};  ///< Index into the palette; nothing: the next colour.
};

/// Stack of bar segments per category: `segments[s].values[c]`.
struct BarSegment {
  std::string label;
  std::vector<double> values;
};
struct Bars {
  std::vector<std::string> categories;
  std::vector<BarSegment> segments;
};

/// Horizontal interval on one row of a Gantt chart.
struct Interval {
  std::size_t row = 0;
  double start = 0;
  double end = 0;
  std::size_t colour = 0;
  std::string label{};  ///< Drawn inside the interval if it fits.
};
/// Time marked on all rows of a Gantt chart by a dashed line.
struct TimeMark {
  double at = 0;
  std::size_t colour = 0;
};
struct Gantt {
  std::vector<std::string> rows;
  std::vector<Interval> intervals;
  std::vector<std::string> colours{};  ///< Legend entries of palette colours 0, 1, ...
  std::vector<TimeMark> marks{};
};

struct Axis {
  std::string label;  ///< Includes the unit: "bytes written per rank (MB)".
  bool logarithmic = false;
  std::optional<double> least{};  ///< Nothing: chosen from the data.
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

/// Write `figure` to `path`, whose ending selects the format: ".svg" or ".png" (two pixels a
/// point). Values that cannot be shown leave a gap: NaN, infinite, not positive on a logarithmic
/// axis. Not collective. Thread-safe.
/// @error invalid_argument  another ending.  @error unsupported  built without cairo.
/// @error not_found  the folder does not exist.  @error io_error, no_space, out_of_memory
Status write_figure(const Figure& figure, const std::string& path);

/// The figure as an <svg> element, to be placed inline in a page; a page may hold several.
/// Not collective. Thread-safe. @error unsupported, out_of_memory
Result<std::string> figure_svg(const Figure& figure);

}  // namespace tailrace::chart
