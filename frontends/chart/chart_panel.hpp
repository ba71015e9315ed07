// One panel of a figure: title, axes, data and legend.

#pragma once

#include <vector>

#include "chart/chart.hpp"
#include "chart/chart_canvas.hpp"
#include "chart/chart_frame.hpp"
#include "chart/chart_legend.hpp"

namespace tailrace::chart {

/// Draw `panel` into `area`. Without anything to show, its axes say "no data".
void draw_panel(Canvas& canvas, const Panel& panel, const Rectangle& area);

/// The kinds of data (chart_series.cpp, chart_bars.cpp): their axes for an area of that size, names
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
