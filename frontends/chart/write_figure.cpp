// Figures as SVG and PNG, drawn by cairo. A drawing is completed in memory before it is written; a
// failed write leaves no file. Cairo stores its first failure in the context until we query it.

#include <cairo-svg.h>
#include <cairo.h>
#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <string_view>
#include <system_error>

#include "chart/chart.hpp"
#include "chart/chart_canvas.hpp"
#include "chart/chart_panel.hpp"

namespace tailrace::chart {
namespace {

/// Write `bytes` to `path`, replacing an existing file. A failed write removes the file.
/// @error not_found  the folder does not exist.  @error io_error, no_space
Status write_chart_file(std::string_view bytes, const std::string& path) {
  std::FILE* file = std::fopen(path.c_str(), "wb");
  if (file == nullptr) return status_from_errno(errno, fmt::format("plot \"{}\"", path));
  int failure = std::fwrite(bytes.data(), 1, bytes.size(), file) == bytes.size() ? 0 : errno;
  if (std::fclose(file) != 0 && failure == 0) failure = errno;
  if (failure == 0) return {};
  // Do not remove a device, such as "/dev/stdout".
  std::error_code ignored;
  if (std::filesystem::is_regular_file(path, ignored)) std::filesystem::remove(path, ignored);
  return status_from_errno(failure, fmt::format("plot \"{}\"", path));
}

constexpr double margin = 14;
constexpr double kBetween = 22;  ///< Distance between panels.
constexpr double kHeadingRoom = 30;
constexpr double kPixelsPerPoint = 2;  ///< Sharp on current screens.

using Surface = std::unique_ptr<cairo_surface_t, decltype(&cairo_surface_destroy)>;
using Context = std::unique_ptr<cairo_t, decltype(&cairo_destroy)>;

struct Grid {
  std::size_t n_columns = 1;
  double width = 0;
  double height = 0;
};

Grid grid_of(const Figure& figure) {
  Grid grid;
  const std::size_t n_panels = std::max<std::size_t>(figure.panels.size(), 1);
  grid.n_columns = std::clamp<std::size_t>(figure.n_columns, 1, n_panels);
  const std::size_t n_rows = (n_panels + grid.n_columns - 1) / grid.n_columns;
  const auto columns = static_cast<double>(grid.n_columns);
  const auto rows = static_cast<double>(n_rows);
  grid.width = 2 * margin + columns * figure.panel_width + (columns - 1) * kBetween;
  grid.height = 2 * margin + rows * figure.panel_height + (rows - 1) * kBetween;
  if (!figure.title.empty()) grid.height += kHeadingRoom;
  return grid;
}

cairo_status_t append_bytes(void* bytes, const unsigned char* data, unsigned int n_bytes) {
  try {
    static_cast<std::string*>(bytes)->append(reinterpret_cast<const char*>(data), n_bytes);
  } catch (const std::bad_alloc&) {
    return CAIRO_STATUS_NO_MEMORY;
  }
  return CAIRO_STATUS_SUCCESS;
}

Status status_of(cairo_status_t status) {
  if (status == CAIRO_STATUS_SUCCESS) return {};
  const Code code = status == CAIRO_STATUS_NO_MEMORY ? Code::out_of_memory : Code::internal;
  return {code, fmt::format("chart: cairo failed: {}", cairo_status_to_string(status))};
}

Status draw(cairo_surface_t* surface, const Figure& figure, const Grid& grid) {
  const Context context(cairo_create(surface), &cairo_destroy);
  Canvas canvas(context.get());
  canvas.fill({0, 0, grid.width, grid.height}, ink::paper);
  double top = margin;
  if (!figure.title.empty()) {
    canvas.text({margin, margin + kHeadingRoom / 2 - 4}, figure.title,
                {.height = 16, .bold = true, .room = grid.width - 2 * margin});
    top += kHeadingRoom;
  }
  for (std::size_t i = 0; i < figure.panels.size(); ++i) {
    const auto column = static_cast<double>(i % grid.n_columns);
    const std::size_t row_index = i / grid.n_columns;
    const auto row = static_cast<double>(row_index);
    draw_panel(
        canvas, figure.panels[i],
        {margin + column * (figure.panel_width + kBetween),
         top + row * (figure.panel_height + kBetween), figure.panel_width, figure.panel_height});
  }
  return status_of(cairo_status(context.get()));
}

Result<std::string> figure_png(const Figure& figure) {
  const Grid grid = grid_of(figure);
  const auto width = static_cast<int>(std::lround(grid.width * kPixelsPerPoint));
  const auto height = static_cast<int>(std::lround(grid.height * kPixelsPerPoint));
  const Surface surface(cairo_image_surface_create(CAIRO_FORMAT_RGB24, width, height),
                        &cairo_surface_destroy);
  cairo_surface_set_device_scale(surface.get(), kPixelsPerPoint, kPixelsPerPoint);
  TAILRACE_TRY(draw(surface.get(), figure, grid));
  std::string bytes;
  TAILRACE_TRY(status_of(cairo_surface_write_to_png_stream(surface.get(), append_bytes, &bytes)));
  return bytes;
}

/// Insert `insertion` into `text` before each name, which follows the text `before`.
void prefix_names(std::string& text, std::string_view before, std::string_view insertion) {
  std::size_t at = 0;
  while ((at = text.find(before, at)) != std::string::npos) {
    at += before.size();
    text.insert(at, insertion);
  }
}

/// Prefix the names in a drawing with a hash of the drawing. Cairo numbers glyphs and clips alike
/// in every drawing; in a page with several drawings, all references would resolve to the first
/// one.
void make_names_unique(std::string& svg) {
  // Remove the drawing's own name: it counts the surfaces of this process, and nothing refers to
  // it.
  const std::string_view surface = " id=\"surface";
  if (const std::size_t at = svg.find(surface); at != std::string::npos) {
    svg.erase(at, svg.find('"', at + surface.size()) + 1 - at);
  }
  std::uint64_t hash = 0xcbf29ce484222325U;  // FNV-1a.
  for (const char c : svg) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3U;
  const std::string prefix = fmt::format("t{:08x}-", hash >> 32);
  prefix_names(svg, " id=\"", prefix);
  prefix_names(svg, "href=\"#", prefix);
  prefix_names(svg, "url(#", prefix);
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&': out += "&amp;"; break;
      case '<': out += "&lt;"; break;
      case '>': out += "&gt;"; break;
      default:
        // Replace characters that XML might not allow; the text is never displayed.
        out +=
            static_cast<unsigned char>(c) < 0x20 || static_cast<unsigned char>(c) >= 0x7F ? ' ' : c;
    }
  }
  return out;
}

/// Description of the drawing for searches and screen readers, which cannot read letters drawn as
/// shapes.
std::string description(const Figure& figure) {
  std::string text;
  for (const Panel& panel : figure.panels) {
    text += panel.title + ": " + panel.y.label + " by " + panel.x.label;
    for (const Series& series : panel.series) text += "; " + series.label;
    if (panel.bars) {
      for (const BarSegment& segment : panel.bars->segments) text += "; " + segment.label;
      for (const std::string& category : panel.bars->categories) text += "; " + category;
    }
    if (panel.gantt) {
      for (const std::string& row : panel.gantt->rows) text += "; " + row;
    }
    text += ".\n";
  }
  return text;
}

}  // namespace

Result<std::string> figure_svg(const Figure& figure) {
  const Grid grid = grid_of(figure);
  std::string svg;
  {
    const Surface surface(
        cairo_svg_surface_create_for_stream(append_bytes, &svg, grid.width, grid.height),
        &cairo_surface_destroy);
#if CAIRO_VERSION >= CAIRO_VERSION_ENCODE(1, 16, 0)
    // Cairo units become CSS pixels, not printer's points.
    cairo_svg_surface_set_document_unit(surface.get(), CAIRO_SVG_UNIT_PX);
#endif
    TAILRACE_TRY(draw(surface.get(), figure, grid));
    cairo_surface_finish(surface.get());
    TAILRACE_TRY(status_of(cairo_surface_status(surface.get())));
  }
  make_names_unique(svg);
  const std::size_t root = svg.find("<svg");
  const std::size_t root_end = svg.find('>', root);
  if (root == std::string::npos || root_end == std::string::npos) {
    return Status(Code::internal, "chart: cairo's SVG has no root element");
  }
  svg.insert(root_end + 1, fmt::format("\n<title>{}</title>\n<desc>{}</desc>",
                                       escaped(figure.title), escaped(description(figure))));
  svg.erase(0, root);  // Remove the XML declaration, which would be an error inside a page.
  return svg;
}

Status write_figure(const Figure& figure, const std::string& path) {
  if (path.ends_with(".svg")) {
    TAILRACE_TAKE(const std::string svg, figure_svg(figure));
    return write_chart_file("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n" + svg, path);
  }
  if (path.ends_with(".png")) {
    TAILRACE_TAKE(const std::string png, figure_png(figure));
    return write_chart_file(png, path);
  }
  return {Code::invalid_argument,
          fmt::format("plot \"{}\": its name must end in .svg or .png", path)};
}

}  // namespace tailrace::chart
