// Frame, legend, data and layout of a panel.

#include "chart/chart_panel.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <numbers>
#include <utility>

namespace tailrace::chart {

// --- the frame: layout and drawing of the axes

namespace {

constexpr double kTickHeight = 10.5;
constexpr double kLabelHeight = 11.5;
constexpr double gap = 6;             ///< Space between axis, tick labels and axis label.
constexpr double kLineRoom = 14;      ///< One line of text.
constexpr double kRightMargin = 16;   ///< Half of the last tick label may extend into this margin.
constexpr double kYLabelShare = 0.3;  ///< Largest share of the area's width.
constexpr double slant = -35 * std::numbers::pi / 180;
constexpr double kUpright = -std::numbers::pi / 2;
constexpr double kLabelDistance = 11;  ///< Least distance between lines of neighbouring categories.
constexpr double kSlantedRoom = 110;   ///< The greatest length of a slanted label.
constexpr double kXLabelShare = 0.4;   ///< Largest share of the area's height for a slanted label.

const TextStyle tick_style{.height = kTickHeight, .colour = ink::quiet};

double widest(Canvas& canvas, const std::vector<Tick>& ticks) {
  double width = 0;
  for (const Tick& tick : ticks) width = std::max(width, canvas.text_width(tick.label, tick_style));
  return width;
}

/// Axis label with the common power of ten, if any: "time (s)", "bytes  [x10^9]"; may be empty.
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

/// Stride of the labelled categories if their lines are `distance` apart and need `needed`.
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
  const std::size_t stride = lying ? 1 : label_stride(slot, kLabelDistance);
  const double across = frame.x_slant == slant ? 3 : 0;
  const double below = lying ? kLineRoom / 2 : frame.x_slant == slant ? 4 : 0;
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
  double free_from = -1;  // Where the last label ends.
  for (const Tick& tick : frame.x.ticks) {
    const double x = frame.at(tick.value, 0).x;
    canvas.line({x, bottom}, {x, bottom + (tick.label.empty() ? 2.5 : 4)}, style);
    const double half = canvas.text_width(tick.label, text) / 2;
    if (tick.label.empty() || x - half < free_from) continue;
    canvas.text({x, bottom + gap + kLineRoom / 2}, tick.label, text);
    free_from = x + half + 4;
  }
}

void draw_y_labels(Canvas& canvas, const Frame& frame) {
  const Rectangle& plot = frame.plot;
  TextStyle text = tick_style;
  text.align = Align::right;
  text.room = kYLabelShare * frame.area.width;
  std::size_t stride = 1;
  if (frame.y.categories) {
    constexpr double least_height = 7.5;
    const double row = slot_of(plot.height, frame.y);
    text.height = std::clamp(row * 0.9, least_height, kTickHeight);
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
  // fit_axis() never returns an axis of width 0. Points far outside are clamped to the range of
  // cairo's fixed-point coordinates.
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
  const double y_labels = std::min(widest(canvas, y.ticks), kYLabelShare * area.width);
  double left = y_labels + gap + 2;
  if (!axis_text(y).empty()) left += kLineRoom + gap;
  double below = gap + kLineRoom;
  if (x.categories) {
    const double width = widest(canvas, x.ticks);
    const double slot = slot_of(area.width - left - kRightMargin, x);
    // A label may stay horizontal if shrinking it a little makes it fit.
    if (width * 0.85 > slot - 4) {
      frame.x_slant = slot * std::sin(-slant) < kLabelDistance ? kUpright : slant;
      frame.x_room = std::min(kSlantedRoom, kXLabelShare * area.height / std::sin(-frame.x_slant));
      const double length = std::min(width, frame.x_room);
      below = gap + 4 + length * std::sin(-frame.x_slant) + kTickHeight / 2;
      // The first label must also begin within the area.
      left = std::max(left, length * std::cos(frame.x_slant) - slot / 2);
    }
  }
  if (!axis_text(x).empty()) below += kLineRoom + gap / 2;
  frame.plot.x = area.x + left;
  frame.plot.width = std::max(area.width - left - kRightMargin, 1.0);
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
  TextStyle text{.height = kLabelHeight, .align = Align::centre};
  text.room = frame.area.width;
  canvas.text({plot.x + plot.width / 2, frame.area.bottom() - kLineRoom / 2}, axis_text(frame.x),
              text);
  text.room = frame.area.height;
  text.slant = -std::numbers::pi / 2;
  canvas.text({frame.area.x + kLineRoom / 2, plot.y + plot.height / 2}, axis_text(frame.y), text);
}

// --- the legend

namespace {

constexpr double kEntryRoom = 15;
constexpr double kKeyWidth = 20;  ///< Width of the sample of line, mark or colour.
constexpr double kKeyGap = 6;
constexpr double kPadding = 6;
constexpr double kFromCorner = 8;
constexpr double kEntryGap = 14;
constexpr double kGreatestLabel = 240;

const TextStyle label_style{.height = 10.5, .room = kGreatestLabel};

double entry_width(Canvas& canvas, const LegendEntry& entry) {
  const double label = canvas.text_width(entry.label, label_style);
  return kKeyWidth + kKeyGap + std::min(label, kGreatestLabel);
}

/// Draw one entry; `middle` is the middle of its left edge.
void draw_entry(Canvas& canvas, const LegendEntry& entry, Point middle, double room) {
  const double centre = middle.x + kKeyWidth / 2;
  const Colour colour = palette_colour(entry.colour);
  if (!entry.mark) {
    canvas.fill({centre - 5.5, middle.y - 5.5, 11, 11}, colour);
  } else {
    if (*entry.mark != Mark::points) {
      canvas.line(middle, {middle.x + kKeyWidth, middle.y}, {colour, 2, entry.dashed});
    }
    if (*entry.mark != Mark::line) canvas.mark({centre, middle.y}, 3.4, entry.colour, 1);
  }
  TextStyle style = label_style;
  style.room = std::min(kGreatestLabel, std::max(room - kKeyWidth - kKeyGap, 1.0));
  canvas.text({middle.x + kKeyWidth + kKeyGap, middle.y}, entry.label, style);
}

}  // namespace

Rectangle legend_box(Canvas& canvas, std::span<const LegendEntry> entries) {
  Rectangle box;
  for (const LegendEntry& entry : entries) {
    box.width = std::max(box.width, entry_width(canvas, entry));
  }
  box.width += 2 * kPadding;
  box.height = static_cast<double>(entries.size()) * kEntryRoom + 2 * kPadding - 2;
  return box;
}

std::optional<Rectangle> free_corner(const Rectangle& plot, const Rectangle& box,
                                     std::span<const Point> data) {
  if (box.width > 0.6 * plot.width || box.height > 0.6 * plot.height) return std::nullopt;
  const double left = plot.x + kFromCorner;
  const double right = plot.right() - kFromCorner - box.width;
  const double top = plot.y + kFromCorner;
  const double bottom = plot.bottom() - kFromCorner - box.height;
  const std::array<Point, 4> corners = {
      {{right, top}, {left, top}, {right, bottom}, {left, bottom}}};
  constexpr double distance = 5;
  for (const Point& corner : corners) {
    const Rectangle held{corner.x - distance, corner.y - distance, box.width + 2 * distance,
                         box.height + 2 * distance};
    if (std::ranges::none_of(data, [&](const Point& point) { return held.holds(point); })) {
      return Rectangle{corner.x, corner.y, box.width, box.height};
    }
  }
  return std::nullopt;
}

void draw_legend_column(Canvas& canvas, std::span<const LegendEntry> entries,
                        const Rectangle& box) {
  canvas.fill(box, ink::paper, 0.9);
  canvas.outline(box, {ink::grid, 1});
  Point middle{box.x + kPadding, box.y + kPadding - 1 + kEntryRoom / 2};
  for (const LegendEntry& entry : entries) {
    draw_entry(canvas, entry, middle, box.width - 2 * kPadding);
    middle.y += kEntryRoom;
  }
}

double legend_lines(Canvas& canvas, std::span<const LegendEntry> entries, double width,
                    std::optional<Point> corner) {
  double across = 0;
  double down = 0;
  for (const LegendEntry& entry : entries) {
    const double needed = entry_width(canvas, entry);
    if (across > 0 && across + needed > width) {
      across = 0;
      down += kEntryRoom;
    }
    if (corner) {
      draw_entry(canvas, entry, {corner->x + across, corner->y + down + kEntryRoom / 2}, width);
    }
    across += needed + kEntryGap;
  }
  return entries.empty() ? 0 : down + kEntryRoom + 3;
}

// --- series of points and lines, and the diagonal on which prediction and measurement agree

namespace {

std::size_t n_points(const Series& series) { return std::min(series.x.size(), series.y.size()); }

std::size_t colour_of(const Panel& panel, std::size_t index) {
  return panel.series[index].colour.value_or(index);
}

bool shown(const Series& series, const Frame& frame, std::size_t i) {
  return frame.x.scale.can_show(series.x[i]) && frame.y.scale.can_show(series.y[i]);
}

/// Contiguous parts of a series, split at values that cannot be shown.
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

/// Points along y = x within the frame.
std::vector<Point> diagonal_of(const Frame& frame) {
  const double least = std::max(frame.x.scale.least, frame.y.scale.least);
  const double greatest = std::min(frame.x.scale.greatest, frame.y.scale.greatest);
  if (!(least < greatest)) return {};
  std::vector<Point> points;
  constexpr int n_parts = 32;  // The line is curved if only one axis is logarithmic.
  for (int i = 0; i <= n_parts; ++i) {
    const double part = static_cast<double>(i) / n_parts;
    const double value = frame.x.scale.logarithmic && least > 0
                             ? least * std::pow(greatest / least, part)
                             : least + (greatest - least) * part;
    points.push_back(frame.at(value, value));
  }
  return points;
}

/// Append points along a curve, one every 4 units.
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

/// Radius of marks: thousands of points are drawn smaller and fainter, so that their density shows.
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
      // If one coordinate of a point cannot be shown, the other does not extend its axis either.
      if (!std::isfinite(x_value) || !std::isfinite(y_value)) continue;
      if ((log_x && x_value <= 0) || (log_y && y_value <= 0)) continue;
      extend(x, x_value, log_x);
      extend(y, y_value, log_y);
    }
  }
  PanelAxes axes;
  axes.empty = x.empty();
  if (panel.diagonal && log_x == log_y) {
    // Both axes show the same interval, so that y = x is the diagonal of the plot.
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
  // Leave room for marks on the border, so that they are not cut.
  canvas.begin_clip({plot.x - 5, plot.y - 5, plot.width + 10, plot.height + 10});
  if (panel.diagonal) canvas.curve(diagonal_of(frame), {ink::axis, 1.2, true});
  for (const bool lines : {true, false}) {  // Draw all marks over all lines.
    for (std::size_t i = 0; i < panel.series.size(); ++i) {
      const Series& series = panel.series[i];
      const std::size_t colour = colour_of(panel, i);
      for (const std::vector<Point>& curve : stretches(series, frame)) {
        if (lines && series.mark != Mark::points) {
          canvas.curve(curve, {palette_colour(colour), 2, series.dashed});
        }
        // Mark a stretch of one point, which would be invisible as a line.
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

// --- stacked bars over categories, and the rows of a Gantt chart

namespace {

constexpr double kBarShare = 0.68;  ///< Share of a category's width.
constexpr double kRowShare = 0.72;  ///< Share of a row's height.

/// Value of a segment; 0 unless it is a positive number.
double value_of(const BarSegment& segment, std::size_t category) {
  if (category >= segment.values.size()) return 0;
  const double value = segment.values[category];
  return std::isfinite(value) && value > 0 ? value : 0;
}

double sum_of(const Bars& bars, std::size_t category) {
  double sum = 0;
  for (const BarSegment& segment : bars.segments) sum += value_of(segment, category);
  return sum;
}

bool shown(const Interval& interval, const Gantt& gantt, const AxisScale& scale) {
  return interval.row < gantt.rows.size() && scale.can_show(interval.start) &&
         scale.can_show(interval.end) && interval.start <= interval.end;
}

/// Colour of legible text on the background `colour`.
Colour text_on(Colour colour) {
  const double brightness = 0.30 * colour.red + 0.59 * colour.green + 0.11 * colour.blue;
  return brightness > 0.6 ? ink::text : ink::paper;
}

}  // namespace

PanelAxes bars_axes(const Panel& panel, const Rectangle& area) {
  const Bars& bars = *panel.bars;
  DataRange sums;
  for (std::size_t c = 0; c < bars.categories.size(); ++c) {
    const double sum = sum_of(bars, c);
    if (sum > 0) extend(sums, sum, panel.y.logarithmic);
  }
  PanelAxes axes;
  axes.empty = sums.empty();
  if (!sums.empty() && panel.y.logarithmic) {
    sums.least /= 2;  // Otherwise the lowest bar might have height 0.
  } else if (!sums.empty()) {
    sums.least = 0;
    sums.greatest *= 1.04;  // Room for the sum above the highest bar.
  }
  axes.x = category_axis(panel.x.label, bars.categories, false);
  axes.y = numeric_axis(panel.y, sums, n_labels_down(area.height));
  return axes;
}

std::vector<LegendEntry> bars_legend(const Panel& panel) {
  std::vector<LegendEntry> entries;
  for (std::size_t s = 0; s < panel.bars->segments.size(); ++s) {
    const std::string& label = panel.bars->segments[s].label;
    if (!label.empty()) entries.push_back({label, s, std::nullopt, false});
  }
  return entries;
}

void draw_bars(Canvas& canvas, const Panel& panel, const Frame& frame) {
  const Bars& bars = *panel.bars;
  const AxisScale& scale = frame.y.scale;
  const double slot =
      frame.plot.width / static_cast<double>(std::max<std::size_t>(bars.categories.size(), 1));
  const double width = std::min(slot * kBarShare, 70.0);
  for (std::size_t c = 0; c < bars.categories.size(); ++c) {
    const double left = frame.at(static_cast<double>(c), scale.greatest).x - width / 2;
    double sum = 0;
    canvas.begin_clip(frame.plot);
    for (std::size_t s = 0; s < bars.segments.size(); ++s) {
      const double value = value_of(bars.segments[s], c);
      if (value == 0) continue;
      // A logarithmic axis has no 0, so the first segment begins at the axis' lower end.
      const double from = scale.can_show(sum) ? std::max(sum, scale.least) : scale.least;
      sum += value;
      if (sum <= from) continue;
      const double bottom = frame.at(0, from).y;
      const double top = frame.at(0, sum).y;
      canvas.fill({left, top, width, bottom - top}, palette_colour(s));
      canvas.line({left, top}, {left + width, top}, {ink::paper, 0.7});
    }
    canvas.end_clip();
    const TextStyle text{.height = 9.5, .align = Align::centre, .colour = ink::quiet};
    const std::string label = short_number(sum);
    if (sum > 0 && canvas.text_width(label, text) < slot - 2) {
      const double top = std::max(frame.at(0, sum).y, frame.plot.y);
      canvas.text({left + width / 2, top - 6}, label, text);
    }
  }
}

PanelAxes gantt_axes(const Panel& panel, const Rectangle& area) {
  const Gantt& gantt = *panel.gantt;
  AxisScale probe;
  probe.logarithmic = panel.x.logarithmic;
  DataRange times;
  for (const Interval& interval : gantt.intervals) {
    if (!shown(interval, gantt, probe)) continue;
    extend(times, interval.start, panel.x.logarithmic);
    extend(times, interval.end, panel.x.logarithmic);
  }
  PanelAxes axes;
  axes.empty = times.empty();
  axes.x = numeric_axis(panel.x, times, n_labels_across(area.width));
  axes.y = category_axis(panel.y.label, gantt.rows, true);
  return axes;
}

std::vector<LegendEntry> gantt_legend(const Panel& panel) {
  std::vector<LegendEntry> entries;
  for (std::size_t i = 0; i < panel.gantt->colours.size(); ++i) {
    const std::string& label = panel.gantt->colours[i];
    if (!label.empty()) entries.push_back({label, i, std::nullopt, false});
  }
  return entries;
}

void draw_gantt(Canvas& canvas, const Panel& panel, const Frame& frame) {
  const Gantt& gantt = *panel.gantt;
  const double row_height =
      frame.plot.height / static_cast<double>(std::max<std::size_t>(gantt.rows.size(), 1));
  const double height = std::min(row_height * kRowShare, 26.0);
  canvas.begin_clip(frame.plot);
  for (std::size_t row = 1; row < gantt.rows.size(); row += 2) {  // Shade every other row.
    const double middle = frame.at(frame.x.scale.least, static_cast<double>(row)).y;
    canvas.fill({frame.plot.x, middle - row_height / 2, frame.plot.width, row_height}, ink::grid,
                0.35);
  }
  for (const Interval& interval : gantt.intervals) {
    if (!shown(interval, gantt, frame.x.scale)) continue;
    const Point from = frame.at(interval.start, static_cast<double>(interval.row));
    const double end = frame.at(interval.end, static_cast<double>(interval.row)).x;
    const Colour colour = palette_colour(interval.colour);
    // Draw at least a hairline for an interval that is too short to be visible.
    const Rectangle box{from.x, from.y - height / 2, std::max(end - from.x, 0.5), height};
    canvas.fill(box, colour);
    if (box.width > 3) canvas.outline(box, {ink::paper, 0.7});
    TextStyle text{.height = std::min(9.5, height * 0.75), .align = Align::centre};
    text.colour = text_on(colour);
    constexpr double least_height = 6;
    if (!interval.label.empty() && text.height >= least_height &&
        canvas.text_width(interval.label, text) < box.width - 4) {
      canvas.text({box.x + box.width / 2, from.y}, interval.label, text);
    }
  }
  for (const TimeMark& mark : gantt.marks) {
    if (!frame.x.scale.can_show(mark.at)) continue;
    const double x = frame.at(mark.at, 0).x;
    canvas.line({x, frame.plot.y}, {x, frame.plot.bottom()},
                {palette_colour(mark.colour), 1.2, true});
  }
  canvas.end_clip();
}

// --- a panel, from top to bottom

namespace {

constexpr double kTitleRoom = 22;

PanelAxes axes_of(const Panel& panel, const Rectangle& area) {
  if (panel.gantt) return gantt_axes(panel, area);
  if (panel.bars) return bars_axes(panel, area);
  return series_axes(panel, area);
}

std::vector<LegendEntry> legend_of(const Panel& panel) {
  if (panel.gantt) return gantt_legend(panel);
  if (panel.bars) return bars_legend(panel);
  return series_legend(panel);
}

void draw_data(Canvas& canvas, const Panel& panel, const Frame& frame) {
  if (panel.gantt) return draw_gantt(canvas, panel, frame);
  if (panel.bars) return draw_bars(canvas, panel, frame);
  draw_series(canvas, panel, frame);
}

}  // namespace

void draw_panel(Canvas& canvas, const Panel& panel, const Rectangle& area) {
  Rectangle rest = area;
  if (!panel.title.empty()) {
    canvas.text({area.x, area.y + kTitleRoom / 2 - 1}, panel.title,
                {.height = 13, .bold = true, .room = area.width});
    rest.y += kTitleRoom;
    rest.height -= kTitleRoom;
  }
  const PanelAxes axes = axes_of(panel, rest);
  const std::vector<LegendEntry> entries = legend_of(panel);
  Frame frame = lay_out_frame(canvas, rest, axes.x, axes.y);
  std::optional<Rectangle> corner;
  if (!entries.empty() && !panel.bars && !panel.gantt) {
    corner = free_corner(frame.plot, legend_box(canvas, entries), series_places(panel, frame));
  }
  if (!entries.empty() && !corner) {
    const double height = legend_lines(canvas, entries, rest.width, Point{rest.x, rest.y});
    rest.y += height;
    rest.height -= height;
    frame = lay_out_frame(canvas, rest, axes.x, axes.y);
  }
  draw_frame(canvas, frame);
  draw_data(canvas, panel, frame);
  if (axes.empty) {
    canvas.text({frame.plot.x + frame.plot.width / 2, frame.plot.y + frame.plot.height / 2},
                "no data", {.height = 12, .align = Align::centre, .colour = ink::quiet});
  }
  if (corner) draw_legend_column(canvas, entries, *corner);
}

}  // namespace tailrace::chart
