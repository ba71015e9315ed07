// A panel's layout: title, legend and frame, from top to bottom.

#include "chart/chart_panel.hpp"

namespace tailrace::chart {
namespace {

constexpr double title_room = 22;

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
    canvas.text({area.x, area.y + title_room / 2 - 1}, panel.title,
                {.height = 13, .bold = true, .room = area.width});
    rest.y += title_room;
    rest.height -= title_room;
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
