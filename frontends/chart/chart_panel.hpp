// A panel of a figure and its parts: two axes around the plot area (a Frame), with grid, ticks and
// labels; the legend, which name belongs to which colour; the kinds of data.
//
// An axis carries numbers or categories (bars, rows of a Gantt chart); a category is the interval
// of one unit around its index. A legend stands inside the plot where a corner is free of data,
// otherwise in lines above it.

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chart/axis_scale.hpp"
#include "chart/chart.hpp"
#include "chart/chart_canvas.hpp"

namespace tailrace::chart {

struct FrameAxis {
  AxisScale scale;
  std::vector<Tick> ticks;
  std::string label;
  bool categories = false;
};

struct Frame {
  Rectangle area;  ///< The plot and its labels.
  Rectangle plot;
  FrameAxis x;
  FrameAxis y;
  double x_slant = 0;  ///< Of categories on x that are too long to lie; radians.
  double x_room = 0;   ///< The greatest length of their names.

  Point at(double x_value, double y_value) const;
};

/// How many labels suit an axis of that length. A tick label is wider than it is high.
std::size_t n_labels_across(double width);
std::size_t n_labels_down(double height);

/// An axis of numbers over `data`, or of categories; `backwards` puts the first one on top.
FrameAxis numeric_axis(const Axis& axis, const DataRange& data, std::size_t n_labels);
FrameAxis category_axis(const std::string& label, const std::vector<std::string>& categories,
                        bool backwards);

/// Give both axes the room their labels need within `area`; the rest is the plot.
Frame lay_out_frame(Canvas& canvas, const Rectangle& area, FrameAxis x, FrameAxis y);

/// The grid, then the axes with their ticks and labels.
void draw_frame(Canvas& canvas, const Frame& frame);

struct LegendEntry {
  std::string label;
  std::size_t colour = 0;
  std::optional<Mark> mark;  ///< Nothing: a box, for bars and intervals.
  bool dashed = false;
};

/// The size of the legend as a column.
Rectangle legend_box(Canvas& canvas, std::span<const LegendEntry> entries);

/// The corner of `plot` for a box of that size that none of `data` touches; nothing: no corner.
std::optional<Rectangle> free_corner(const Rectangle& plot, const Rectangle& box,
                                     std::span<const Point> data);

/// Draw the legend as a column in `box`.
void draw_legend_column(Canvas& canvas, std::span<const LegendEntry> entries, const Rectangle& box);

/// How high the legend is as lines of at most `width`; draws it from `corner` on unless that is
/// nothing.
double legend_lines(Canvas& canvas, std::span<const LegendEntry> entries, double width,
                    std::optional<Point> corner);

/// Draw `panel` into `area`. Without anything to show, its axes say "no data".
void draw_panel(Canvas& canvas, const Panel& panel, const Rectangle& area);

/// The kinds of data: their axes for an area of that size, names
/// and strokes; and, for series, where their points and lines lie, so that a legend can avoid them.
struct PanelAxes {
  FrameAxis x;
  FrameAxis y;
  bool empty = false;
};

PanelAxes series_axes(const Panel& panel, const Rectangle& area);
std::vector<LegendEntry> series_legend(const Panel& panel);
std::vector<Point> series_places(const Panel& panel, const Frame& frame);
void draw_series(Canvas& canvas, const Panel& panel, const Frame& frame);

PanelAxes bars_axes(const Panel& panel, const Rectangle& area);
std::vector<LegendEntry> bars_legend(const Panel& panel);
void draw_bars(Canvas& canvas, const Panel& panel, const Frame& frame);

PanelAxes gantt_axes(const Panel& panel, const Rectangle& area);
std::vector<LegendEntry> gantt_legend(const Panel& panel);
void draw_gantt(Canvas& canvas, const Panel& panel, const Frame& frame);

}  // namespace tailrace::chart
