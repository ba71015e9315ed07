// Frame: a panel's two axes around its plot area, with grid, ticks and labels.
//
// An axis carries numbers or categories (bars, rows of a Gantt chart); a category is the interval
// of one unit around its index.

#pragma once

#include <string>
#include <vector>

#include "chart/axis_scale.hpp"
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

}  // namespace tailrace::chart
