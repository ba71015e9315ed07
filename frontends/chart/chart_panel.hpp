// Panel of a figure and its parts: the Frame (two axes around the plot area, with grid, ticks and
// labels), the legend and the kinds of data.
//
// An axis shows numbers or categories (bars, rows of a Gantt chart); a category is the interval of
// width 1 around its index. The legend is drawn in a corner of the plot that is free of data, or
// else in lines above the plot.

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
  double x_slant = 0;  ///< Slant of category names on x that are too long; radians.
  double x_room = 0;   ///< The greatest length of these names.

  Point at(double x_value, double y_value) const;
};

/// Number of labels that suit an axis of that length. Tick labels are wider than they are high.
std::size_t n_labels_across(double width);
std::size_t n_labels_down(double height);

/// Axis of numbers over `data`, or of categories; `backwards` puts the first category on top.
FrameAxis numeric_axis(const Axis& axis, const DataRange& data, std::size_t n_labels);
FrameAxis category_axis(const std::string& label, const std::vector<std::string>& categories,
                        bool backwards);

/// Reserve the space that the labels of both axes need within `area`; the rest is the plot.
Frame lay_out_frame(Canvas& canvas, const Rectangle& area, FrameAxis x, FrameAxis y);

/// Draw the grid, then the axes with their ticks and labels.
void draw_frame(Canvas& canvas, const Frame& frame);

struct LegendEntry {
  std::string label;
  std::size_t colour = 0;
  std::optional<Mark> mark;  ///< Nothing: a box, for bars and intervals.
  bool dashed = false;
};

/// Size of the legend as a column.
Rectangle legend_box(Canvas& canvas, std::span<const LegendEntry> entries);

/// Corner of `plot` in which a box of that size touches none of the points `data`; nothing if every
/// corner has data.
std::optional<Rectangle> free_corner(const Rectangle& plot, const Rectangle& box,
                                     std::span<const Point> data);

/// Draw the legend as a column in `box`.
void draw_legend_column(Canvas& canvas, std::span<const LegendEntry> entries, const Rectangle& box);

/// Height of the legend in lines of at most `width`. Also draws the legend at `corner`, if that is
/// given.
double legend_lines(Canvas& canvas, std::span<const LegendEntry> entries, double width,
                    std::optional<Point> corner);

/// Draw `panel` into `area`. A panel without data shows "no data" on its axes.
void draw_panel(Canvas& canvas, const Panel& panel, const Rectangle& area);

/// Axes of each kind of data for an area of that size. Each kind also has legend entries and a
/// drawing function. Series also list the places of their points and lines, so that the legend can
/// avoid them.
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
