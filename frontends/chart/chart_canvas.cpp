// Strokes, marks and text, drawn by cairo.

#include "chart/chart_canvas.hpp"

#include <algorithm>
#include <array>
#include <numbers>

#include "core/utf8.hpp"

namespace tailrace::chart {
namespace {

// "Color universal design", Okabe and Ito 2008. Yellow comes last, because it is faint on white.
constexpr std::array<Colour, 8> kPalette = {{{0.000, 0.447, 0.698},    // blue
                                             {0.835, 0.369, 0.000},    // vermilion
                                             {0.000, 0.620, 0.451},    // bluish green
                                             {0.902, 0.624, 0.000},    // orange
                                             {0.800, 0.475, 0.655},    // reddish purple
                                             {0.337, 0.706, 0.914},    // sky blue
                                             {0.250, 0.250, 0.270},    // black, softened
                                             {0.880, 0.820, 0.150}}};  // yellow, darkened

constexpr double kLeastShrink = 0.8;
const std::string ellipsis = "…";

/// `text` in well-formed UTF-8 without control characters.
std::string printable(const std::string& text) {
  std::string out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = utf8_character_bytes(text, at);
    if (length == 0) {
      out += '?';
    } else if (length == 1 && static_cast<unsigned char>(text[at]) < 0x20) {
      out += ' ';
    } else {
      out.append(text, at, length);
    }
    at += std::max<std::size_t>(length, 1);
  }
  return out;
}

/// Remove the last character.
void drop_character(std::string& text) {
  while (!text.empty() && (static_cast<unsigned char>(text.back()) & 0xC0) == 0x80) {
    text.pop_back();
  }
  if (!text.empty()) text.pop_back();
}

}  // namespace

Colour palette_colour(std::size_t index) { return kPalette[index % kPalette.size()]; }

Canvas::Canvas(cairo_t* context) : context_(context) {
  // Without hinting, a label has the same width at every scale, so SVG and PNG have one layout.
  cairo_font_options_t* options = cairo_font_options_create();
  cairo_font_options_set_hint_style(options, CAIRO_HINT_STYLE_NONE);
  cairo_font_options_set_hint_metrics(options, CAIRO_HINT_METRICS_OFF);
  cairo_font_options_set_antialias(options, CAIRO_ANTIALIAS_GRAY);
  cairo_set_font_options(context_, options);
  cairo_font_options_destroy(options);
  cairo_set_line_join(context_, CAIRO_LINE_JOIN_ROUND);
}

void Canvas::ink_with(Colour colour, double opacity) {
  cairo_set_source_rgba(context_, colour.red, colour.green, colour.blue, opacity);
}

void Canvas::fill(const Rectangle& area, Colour colour, double opacity) {
  ink_with(colour, opacity);
  cairo_rectangle(context_, area.x, area.y, area.width, area.height);
  cairo_fill(context_);
}

void Canvas::outline(const Rectangle& area, const StrokeStyle& style) {
  ink_with(style.colour, 1);
  cairo_set_line_width(context_, style.width);
  cairo_rectangle(context_, area.x, area.y, area.width, area.height);
  cairo_stroke(context_);
}

void Canvas::line(Point from, Point to, const StrokeStyle& style) {
  const std::array<Point, 2> ends = {from, to};
  curve(ends, style);
}

void Canvas::curve(std::span<const Point> points, const StrokeStyle& style) {
  if (points.size() < 2) return;
  ink_with(style.colour, 1);
  cairo_set_line_width(context_, style.width);
  const std::array<double, 2> dashes = {4 * style.width, 2.5 * style.width};
  if (style.dashed) cairo_set_dash(context_, dashes.data(), static_cast<int>(dashes.size()), 0);
  cairo_move_to(context_, points[0].x, points[0].y);
  for (const Point& point : points.subspan(1)) cairo_line_to(context_, point.x, point.y);
  cairo_stroke(context_);
  if (style.dashed) cairo_set_dash(context_, nullptr, 0, 0);
}

void Canvas::mark(Point centre, double radius, std::size_t colour_index, double opacity) {
  ink_with(palette_colour(colour_index), opacity);
  const auto [x, y] = centre;
  const double reach = radius * 1.25;
  constexpr double tiny = 2;  // Too small for a shape; squares make the smallest SVG.
  switch (radius < tiny ? 1 : colour_index % 4) {
    case 0: cairo_arc(context_, x, y, radius, 0, 2 * std::numbers::pi); break;
    case 1:
      cairo_rectangle(context_, x - radius * 0.9, y - radius * 0.9, radius * 1.8, radius * 1.8);
      break;
    case 2:
      cairo_move_to(context_, x, y - reach);
      cairo_line_to(context_, x + reach, y + reach * 0.8);
      cairo_line_to(context_, x - reach, y + reach * 0.8);
      break;
    default:
      cairo_move_to(context_, x, y - reach);
      cairo_line_to(context_, x + reach, y);
      cairo_line_to(context_, x, y + reach);
      cairo_line_to(context_, x - reach, y);
      break;
  }
  cairo_close_path(context_);
  cairo_fill(context_);
}

void Canvas::choose_font(double height, bool bold) {
  cairo_select_font_face(context_, "sans-serif", CAIRO_FONT_SLANT_NORMAL,
                         bold ? CAIRO_FONT_WEIGHT_BOLD : CAIRO_FONT_WEIGHT_NORMAL);
  cairo_set_font_size(context_, height);
}

double Canvas::measured(const std::string& text) {
  cairo_text_extents_t extents;
  cairo_text_extents(context_, text.c_str(), &extents);
  return extents.x_advance;
}

double Canvas::text_width(const std::string& text, const TextStyle& style) {
  choose_font(style.height, style.bold);
  return measured(printable(text));
}

void Canvas::text(Point anchor, const std::string& text, const TextStyle& style) {
  std::string shown = printable(text);
  double height = style.height;
  choose_font(height, style.bold);
  double width = measured(shown);
  if (width > style.room && width > 0) {
    height *= std::max(kLeastShrink, style.room / width);
    choose_font(height, style.bold);
    width = measured(shown);
    if (width > style.room * (1 + 1e-6)) {
      while (width > style.room && !shown.empty()) {
        drop_character(shown);
        width = measured(shown + ellipsis);
      }
      shown += ellipsis;
    }
  }
  const double shift = style.align == Align::left     ? 0
                       : style.align == Align::centre ? -width / 2
                                                      : -width;
  ink_with(style.colour, 1);
  cairo_save(context_);
  cairo_translate(context_, anchor.x, anchor.y);
  cairo_rotate(context_, style.slant);
  // The middle of lower-case letters is about a third of the font's height above the baseline.
  cairo_move_to(context_, shift, height * 0.35);
  cairo_show_text(context_, shown.c_str());
  cairo_restore(context_);
}

void Canvas::begin_clip(const Rectangle& area) {
  cairo_save(context_);
  cairo_rectangle(context_, area.x, area.y, area.width, area.height);
  cairo_clip(context_);
}

void Canvas::end_clip() { cairo_restore(context_); }

}  // namespace tailrace::chart
