// Placing and drawing legends.

#include "chart/chart_legend.hpp"

#include <algorithm>
#include <array>

namespace tailrace::chart {
namespace {

constexpr double entry_room = 15;
constexpr double key_width = 20;  ///< The sample of line, mark or colour.
constexpr double key_gap = 6;
constexpr double padding = 6;
constexpr double from_corner = 8;
constexpr double entry_gap = 14;
constexpr double greatest_label = 240;

const TextStyle label_style{.height = 10.5, .room = greatest_label};

double entry_width(Canvas& canvas, const LegendEntry& entry) {
  const double label = canvas.text_width(entry.label, label_style);
  return key_width + key_gap + std::min(label, greatest_label);
}

/// `middle` is at the left end of the entry.
void draw_entry(Canvas& canvas, const LegendEntry& entry, Point middle, double room) {
  const double centre = middle.x + key_width / 2;
  const Colour colour = palette_colour(entry.colour);
  if (!entry.mark) {
    canvas.fill({centre - 5.5, middle.y - 5.5, 11, 11}, colour);
  } else {
    if (*entry.mark != Mark::points) {
      canvas.line(middle, {middle.x + key_width, middle.y}, {colour, 2, entry.dashed});
    }
    if (*entry.mark != Mark::line) canvas.mark({centre, middle.y}, 3.4, entry.colour, 1);
  }
  TextStyle style = label_style;
  style.room = std::min(greatest_label, std::max(room - key_width - key_gap, 1.0));
  canvas.text({middle.x + key_width + key_gap, middle.y}, entry.label, style);
}

}  // namespace

Rectangle legend_box(Canvas& canvas, std::span<const LegendEntry> entries) {
  Rectangle box;
  for (const LegendEntry& entry : entries) {
    box.width = std::max(box.width, entry_width(canvas, entry));
  }
  box.width += 2 * padding;
  box.height = static_cast<double>(entries.size()) * entry_room + 2 * padding - 2;
  return box;
}

std::optional<Rectangle> free_corner(const Rectangle& plot, const Rectangle& box,
                                     std::span<const Point> data) {
  if (box.width > 0.6 * plot.width || box.height > 0.6 * plot.height) return std::nullopt;
  const double left = plot.x + from_corner;
  const double right = plot.right() - from_corner - box.width;
  const double top = plot.y + from_corner;
  const double bottom = plot.bottom() - from_corner - box.height;
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
  Point middle{box.x + padding, box.y + padding - 1 + entry_room / 2};
  for (const LegendEntry& entry : entries) {
    draw_entry(canvas, entry, middle, box.width - 2 * padding);
    middle.y += entry_room;
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
      down += entry_room;
    }
    if (corner) {
      draw_entry(canvas, entry, {corner->x + across, corner->y + down + entry_room / 2}, width);
    }
    across += needed + entry_gap;
  }
  return entries.empty() ? 0 : down + entry_room + 3;
}

}  // namespace tailrace::chart
