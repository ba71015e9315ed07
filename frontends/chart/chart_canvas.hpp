// Canvas: the few drawing operations that charts need, over a cairo context; and the palette.
//
// Lengths are in points of the figure; x grows to the right, y downwards. Text is made to fit:
// shrunk by up to a fifth, then cut with an ellipsis. Invalid UTF-8 bytes become question marks,
// because a single one would make cairo reject the complete drawing.

#pragma once

#include <cairo.h>

#include <cstddef>
#include <limits>
#include <span>
#include <string>

namespace tailrace::chart {

struct Colour {
  double red = 0;
  double green = 0;
  double blue = 0;
};

struct Point {
  double x = 0;
  double y = 0;
};

struct Rectangle {
  double x = 0;
  double y = 0;
  double width = 0;
  double height = 0;

  double right() const { return x + width; }
  double bottom() const { return y + height; }
  bool holds(Point point) const {
    return point.x >= x && point.x <= right() && point.y >= y && point.y <= bottom();
  }
};

namespace ink {
inline constexpr Colour paper{1, 1, 1};
inline constexpr Colour text{0.13, 0.13, 0.15};
inline constexpr Colour quiet{0.36, 0.37, 0.40};  ///< Tick labels, the diagonal.
inline constexpr Colour axis{0.55, 0.56, 0.59};
inline constexpr Colour grid{0.90, 0.91, 0.92};
inline constexpr Colour minor_grid{0.955, 0.96, 0.965};
}  // namespace ink

/// Colour `index` of the palette of Okabe and Ito (2008), which colour-blind readers can
/// distinguish. The palette repeats after eight colours.
Colour palette_colour(std::size_t index);

enum class Align : unsigned char { left, centre, right };

struct TextStyle {
  double height = 10.5;  ///< Height of the font.
  bool bold = false;
  Align align = Align::left;
  Colour colour = ink::text;
  double slant = 0;                                       ///< Radians, clockwise.
  double room = std::numeric_limits<double>::infinity();  ///< The greatest width.
};

struct StrokeStyle {
  Colour colour;
  double width = 1;
  bool dashed = false;
};

class Canvas {
 public:
  explicit Canvas(cairo_t* context);

  void fill(const Rectangle& area, Colour colour, double opacity = 1);
  void outline(const Rectangle& area, const StrokeStyle& style);
  void line(Point from, Point to, const StrokeStyle& style);
  void curve(std::span<const Point> points, const StrokeStyle& style);
  /// Draw a filled mark. The colour's index also selects its shape, as a second way to distinguish
  /// series.
  void mark(Point centre, double radius, std::size_t colour_index, double opacity);

  /// Width of `text`, not limited by style.room.
  double text_width(const std::string& text, const TextStyle& style);
  /// Draw `text`; `anchor` is at the middle of a lower-case letter's height.
  void text(Point anchor, const std::string& text, const TextStyle& style);

  /// Clip all drawing to `area` until end_clip().
  void begin_clip(const Rectangle& area);
  void end_clip();

 private:
  void ink_with(Colour colour, double opacity);
  void choose_font(double height, bool bold);
  double measured(const std::string& text);

  cairo_t* context_;
};

}  // namespace tailrace::chart
