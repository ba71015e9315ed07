// Legend: which name belongs to which colour. Inside the plot where a corner is free of data,
// otherwise in lines above it.

#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "chart/chart.hpp"
#include "chart/chart_canvas.hpp"

namespace tailrace::chart {

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

}  // namespace tailrace::chart
