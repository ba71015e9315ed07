// Axes: what room they take and how they are drawn.

#include "chart/chart_frame.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <utility>

namespace tailrace::chart {
namespace {

constexpr double tick_height = 10.5;
constexpr double label_height = 11.5;
constexpr double gap = 6;              ///< Between axis, tick labels and axis label.
constexpr double line_room = 14;       ///< One line of text.
constexpr double right_margin = 16;    ///< Half of the last tick label may stand out here.
constexpr double y_label_share = 0.3;  ///< Of the area's width, at most.
constexpr double slant = -35 * std::numbers::pi / 180;
constexpr double upright = -std::numbers::pi / 2;
constexpr double label_distance = 11;  ///< Between the lines of neighbouring categories.
constexpr double slanted_room = 110;   ///< The greatest length of a slanted label...
constexpr double x_label_share = 0.4;  ///< ...and how much of the area's height it may take.

const TextStyle tick_style{.height = tick_height, .colour = ink::quiet};

double widest(Canvas& canvas, const std::vector<Tick>& ticks) {
  double width = 0;
  for (const Tick& tick : ticks) width = std::max(width, canvas.text_width(tick.label, tick_style));
  return width;
}

/// Text at the foot of the axis, or none: "time (s)", "bytes (×10⁹)".
std::string axis_text(const FrameAxis& axis) {
  if (axis.scale.exponent == 0) return axis.label;
  const std::string factor = "×" + power_of_ten(axis.scale.exponent);
  return axis.label.empty() ? factor : axis.label + "  [" + factor + "]";
}

void draw_grid(Canvas& canvas, const Frame& frame) {
  const Rectangle& plot = frame.plot;
  for (const bool major : {false, true}) {  // Major lines over minor ones.
    const StrokeStyle style{major ? ink::grid : ink::minor_grid, major ? 1.0 : 0.8};
    for (const Tick& tick : frame.x.ticks) {
      if (frame.x.categories || tick.label.empty() == major) continue;
      const double x = frame.at(tick.value, 0).x;
      canvas.line({x, plot.y}, {x, plot.bottom()}, style);
    }
    for (const Tick& tick : frame.y.ticks) {
      if (frame.y.categories || tick.label.empty() == major) continue;
      const double y = frame.at(0, tick.value).y;
      canvas.line({plot.x, y}, {plot.right(), y}, style);
    }
  }
}

double slot_of(double room, const FrameAxis& axis) {
  return room / static_cast<double>(std::max<std::size_t>(axis.ticks.size(), 1));
}

/// Every how many categories one is named, where their lines are that far apart.
std::size_t label_stride(double distance, double needed) {
  return static_cast<std::size_t>(std::max(1.0, std::ceil(needed / distance)));
}

void draw_x_categories(Canvas& canvas, const Frame& frame) {
  TextStyle text = tick_style;
  text.slant = frame.x_slant;
  const bool lying = frame.x_slant == 0;
  const double slot = slot_of(frame.plot.width, frame.x);
  text.align = lying ? Align::centre : Align::right;
  text.room = lying ? slot - 4 : frame.x_room;
  const std::size_t stride = lying ? 1 : label_stride(slot, label_distance);
  const double across = frame.x_slant == slant ? 3 : 0;
  const double below = lying ? line_room / 2 : frame.x_slant == slant ? 4 : 0;
  for (std::size_t i = 0; i < frame.x.ticks.size(); i += stride) {
    const double x = frame.at(frame.x.ticks[i].value, 0).x;
    canvas.text({x + across, frame.plot.bottom() + gap + below}, frame.x.ticks[i].label, text);
  }
}

void draw_x_numbers(Canvas& canvas, const Frame& frame) {
  const StrokeStyle style{ink::axis, 1};
  TextStyle text = tick_style;
  text.align = Align::centre;
  const double bottom = frame.plot.bottom();
  double free_from = -1;  // Where the last label ended.
  for (const Tick& tick : frame.x.ticks) {
    const double x = frame.at(tick.value, 0).x;
    canvas.line({x, bottom}, {x, bottom + (tick.label.empty() ? 2.5 : 4)}, style);
    const double half = canvas.text_width(tick.label, text) / 2;
    if (tick.label.empty() || x - half < free_from) continue;
    canvas.text({x, bottom + gap + line_room / 2}, tick.label, text);
    free_from = x + half + 4;
  }
}

void draw_y_labels(Canvas& canvas, const Frame& frame) {
  const Rectangle& plot = frame.plot;
  TextStyle text = tick_style;
  text.align = Align::right;
  text.room = y_label_share * frame.area.width;
  std::size_t stride = 1;
  if (frame.y.categories) {
    constexpr double least_height = 7.5;
    const double row = slot_of(plot.height, frame.y);
    text.height = std::clamp(row * 0.9, least_height, tick_height);
    stride = label_stride(row, least_height);
  }
  for (std::size_t i = 0; i < frame.y.ticks.size(); ++i) {
    const Tick& tick = frame.y.ticks[i];
    const double y = frame.at(0, tick.value).y;
    if (!frame.y.categories) {
      const double length = tick.label.empty() ? 2.5 : 4;
      canvas.line({plot.x - length, y}, {plot.x, y}, {ink::axis, 1});
    }
    if (!tick.label.empty() && i % stride == 0) canvas.text({plot.x - gap, y}, tick.label, text);
  }
}

}  // namespace

Point Frame::at(double x_value, double y_value) const {
  // An axis without width cannot come out of fit_axis; what lies far outside is kept within what
  // cairo's fixed-point coordinates can hold.
  const double across = std::clamp(x.scale.position(x_value), -10.0, 11.0);
  const double up = std::clamp(y.scale.position(y_value), -10.0, 11.0);
  return {plot.x + across * plot.width, plot.bottom() - up * plot.height};
}

std::size_t n_labels_across(double width) {
  return static_cast<std::size_t>(std::clamp(width / 62, 2.0, 12.0));
}

std::size_t n_labels_down(double height) {
  return static_cast<std::size_t>(std::clamp(height / 38, 2.0, 12.0));
}

FrameAxis numeric_axis(const Axis& axis, const DataRange& data, std::size_t n_labels) {
  FrameAxis out;
  out.scale = fit_axis(axis, data, n_labels);
  out.ticks = axis_ticks(out.scale, n_labels);
  out.label = axis.label;
  return out;
}

FrameAxis category_axis(const std::string& label, const std::vector<std::string>& categories,
                        bool backwards) {
  FrameAxis out;
  out.label = label;
  out.categories = true;
  out.scale.least = -0.5;
  out.scale.greatest = static_cast<double>(std::max<std::size_t>(categories.size(), 1)) - 0.5;
  if (backwards) std::swap(out.scale.least, out.scale.greatest);
  for (std::size_t i = 0; i < categories.size(); ++i) {
    out.ticks.push_back({static_cast<double>(i), categories[i]});
  }
  return out;
}

Frame lay_out_frame(Canvas& canvas, const Rectangle& area, FrameAxis x, FrameAxis y) {
  Frame frame;
  frame.area = area;
  const double y_labels = std::min(widest(canvas, y.ticks), y_label_share * area.width);
  double left = y_labels + gap + 2;
  if (!axis_text(y).empty()) left += line_room + gap;
  double below = gap + line_room;
  if (x.categories) {
    const double width = widest(canvas, x.ticks);
    const double slot = slot_of(area.width - left - right_margin, x);
    // A label that shrinks a little may still lie.
    if (width * 0.85 > slot - 4) {
      frame.x_slant = slot * std::sin(-slant) < label_distance ? upright : slant;
      frame.x_room = std::min(slanted_room, x_label_share * area.height / std::sin(-frame.x_slant));
      const double length = std::min(width, frame.x_room);
      below = gap + 4 + length * std::sin(-frame.x_slant) + tick_height / 2;
      // The first label begins within the area, too.
      left = std::max(left, length * std::cos(frame.x_slant) - slot / 2);
    }
  }
  if (!axis_text(x).empty()) below += line_room + gap / 2;
  frame.plot.x = area.x + left;
  frame.plot.width = std::max(area.width - left - right_margin, 1.0);
  frame.plot.y = area.y + gap;
  frame.plot.height = std::max(area.height - below - gap, 1.0);
  frame.x = std::move(x);
  frame.y = std::move(y);
  return frame;
}

void draw_frame(Canvas& canvas, const Frame& frame) {
  const Rectangle& plot = frame.plot;
  draw_grid(canvas, frame);
  canvas.line({plot.x, plot.bottom()}, {plot.right(), plot.bottom()}, {ink::axis, 1});
  canvas.line({plot.x, plot.y}, {plot.x, plot.bottom()}, {ink::axis, 1});
  if (frame.x.categories) {
    draw_x_categories(canvas, frame);
  } else {
    draw_x_numbers(canvas, frame);
  }
  draw_y_labels(canvas, frame);
  TextStyle text{.height = label_height, .align = Align::centre};
  text.room = frame.area.width;
  canvas.text({plot.x + plot.width / 2, frame.area.bottom() - line_room / 2}, axis_text(frame.x),
              text);
  text.room = frame.area.height;
  text.slant = -std::numbers::pi / 2;
  canvas.text({frame.area.x + line_room / 2, plot.y + plot.height / 2}, axis_text(frame.y), text);
}

}  // namespace tailrace::chart
