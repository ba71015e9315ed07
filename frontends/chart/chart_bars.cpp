// Stacked bars over categories, and the rows of a Gantt chart.

#include <algorithm>
#include <cmath>

#include "chart/chart_panel.hpp"

namespace tailrace::chart {
namespace {

constexpr double bar_share = 0.68;  ///< Of a category's width.
constexpr double row_share = 0.72;  ///< Of a row's height.

/// A segment's value; what is no positive number adds nothing.
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

/// Text that reads well on that colour.
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
    sums.least /= 2;  // Else the lowest bar might have no height.
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
  const double width = std::min(slot * bar_share, 70.0);
  for (std::size_t c = 0; c < bars.categories.size(); ++c) {
    const double left = frame.at(static_cast<double>(c), scale.greatest).x - width / 2;
    double sum = 0;
    canvas.begin_clip(frame.plot);
    for (std::size_t s = 0; s < bars.segments.size(); ++s) {
      const double value = value_of(bars.segments[s], c);
      if (value == 0) continue;
      // On a logarithmic axis the first segment begins at the axis' end, there being no 0.
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
  const double height = std::min(row_height * row_share, 26.0);
  canvas.begin_clip(frame.plot);
  for (std::size_t row = 1; row < gantt.rows.size(); row += 2) {  // Every other row is shaded.
    const double middle = frame.at(frame.x.scale.least, static_cast<double>(row)).y;
    canvas.fill({frame.plot.x, middle - row_height / 2, frame.plot.width, row_height}, ink::grid,
                0.35);
  }
  for (const Interval& interval : gantt.intervals) {
    if (!shown(interval, gantt, frame.x.scale)) continue;
    const Point from = frame.at(interval.start, static_cast<double>(interval.row));
    const double end = frame.at(interval.end, static_cast<double>(interval.row)).x;
    const Colour colour = palette_colour(interval.colour);
    // What is too short to be seen still leaves a hair.
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

}  // namespace tailrace::chart
