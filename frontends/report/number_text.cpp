// Text forms of numbers, positions and paths; wrapping and shortening.

#include "number_text.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstring>

#include "core/environment.hpp"
#include "trz/base/printable.hpp"

namespace tailrace::report {

std::string size_text(std::uint64_t n_bytes) {
  constexpr std::array<const char*, 6> units = {"B", "kB", "MB", "GB", "TB", "PB"};
  double number = static_cast<double>(n_bytes);
  std::size_t unit = 0;
  while (number >= 999.5 && unit + 1 < units.size()) {
    number /= 1000;
    ++unit;
  }
  if (unit == 0) return fmt::format("{} B", n_bytes);
  const int decimals = number < 9.995 ? 2 : (number < 99.95 ? 1 : 0);
  return fmt::format("{:.{}f} {}", number, decimals, units[unit]);
}

std::string seconds_text(double seconds) {
  if (seconds >= 120) {
    const auto whole = static_cast<std::uint64_t>(std::llround(seconds));
    return fmt::format("{} min {:02} s", whole / 60, whole % 60);
  }
  const int decimals = seconds < 9.9995 ? 3 : (seconds < 99.995 ? 2 : 1);
  return fmt::format("{:.{}f} s", seconds, decimals);
}

std::string throughput_text(std::uint64_t n_bytes, double seconds) {
  if (seconds <= 1e-7 || n_bytes == 0) return "-";
  const double megabytes = static_cast<double>(n_bytes) / seconds / 1e6;
  return fmt::format("{:.{}f}", megabytes, megabytes < 9.95 ? 1 : 0);
}

std::string ratio_text(std::uint64_t raw_bytes, std::uint64_t encoded_bytes) {
  if (encoded_bytes == 0) return "-";
  const double ratio = static_cast<double>(raw_bytes) / static_cast<double>(encoded_bytes);
  return fmt::format("{:.{}f}", ratio, ratio < 99.95 ? 2 : (ratio < 999.5 ? 1 : 0));
}

std::string share_text(double error, double bound) {
  if (error == 0) return "0";
  if (!(bound > 0)) return "-";
  const double percent = 100 * error / bound;
  if (!std::isfinite(percent)) return "inf";
  if (percent >= 1e4) return fmt::format("{:.2g}x", percent / 100);
  // Never let rounding show "100.0%" for an error that is beyond its bound, or within it.
  if (percent > 100 && percent < 100.05) return ">100%";
  return fmt::format("{:.1f}%", percent > 99.95 && percent < 100 ? 99.9 : percent);
}

std::string bound_column_text(const ErrorBound& bound) {
  return bound.lossless() ? "exact" : error_bound_text(bound);
}

std::string position_text(const Shape& position) {
  return fmt::format("[{}]", fmt::join(position, ", "));
}

namespace {

bool starts_character(char byte) { return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U; }

}  // namespace

TextRoom& text_room() {
  static TextRoom room;
  return room;
}

TextRoom room_of(int descriptor) {
  constexpr std::size_t usual_columns = 80;
  constexpr std::size_t least_columns = 40;   // Below this, each word would get a line of its own.
  constexpr std::size_t prose_columns = 100;  // Longer lines are hard to read.
  std::size_t stated = 0;
  if (const char* text = environment_variable("COLUMNS"); text != nullptr) {
    const char* end = text + std::strlen(text);
    if (std::from_chars(text, end, stated).ptr != end) stated = 0;
  }
  winsize size{};
  const bool terminal = ::isatty(descriptor) == 1;
  if (terminal) ::ioctl(descriptor, TIOCGWINSZ, &size);
  if (stated == 0) stated = size.ws_col;
  TextRoom room;
  room.prose = 0;
  room.may_leave_out = terminal && size.ws_col > 0;
  if (stated > 0 || terminal) {
    room.table = std::max(stated > 0 ? stated : usual_columns, least_columns);
    if (stated > 0) room.prose = std::min(room.table, prose_columns);
  }
  return room;
}

std::string fitted(std::string_view text, std::size_t taken) {
  const TextRoom& room = text_room();
  std::string shown = printable(std::string(text));
  if (!room.may_leave_out) return shown;
  return shorten_middle(shown, std::max<std::size_t>(room.table, taken + 16) - taken);
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), starts_character));
}

std::size_t byte_of_character(std::string_view text, std::size_t n_characters) {
  std::size_t at = 0;
  while (at < text.size()) {
    if (starts_character(text[at]) && n_characters-- == 0) break;
    ++at;
  }
  return at;
}

std::string shorten_middle(std::string_view text, std::size_t width) {
  const std::size_t n_characters = display_width(text);
  if (n_characters <= width || width < 3) return std::string(text);
  // The end of a path says more than its beginning, so the end gets two thirds.
  const std::size_t n_head = (width - 1) / 3;
  const std::size_t n_end = width - 1 - n_head;
  return fmt::format("{}~{}", text.substr(0, byte_of_character(text, n_head)),
                     text.substr(byte_of_character(text, n_characters - n_end)));
}

std::string wrapped(std::string_view sentence, std::size_t indent, std::size_t first_column,
                    std::size_t width) {
  std::string shown = printable(std::string(sentence));
  if (width == 0) width = text_room().prose;
  if (width == 0) return shown;
  std::string_view text = shown;
  std::string lines;
  std::size_t column = first_column;
  while (!text.empty()) {
    const std::size_t space = text.find(' ');
    const std::string_view word = text.substr(0, space);
    text = space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
    const std::size_t word_width = display_width(word);
    if (column > indent && column + 1 + word_width > width) {
      lines += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!lines.empty()) {
      lines += ' ';
      ++column;
    }
    lines += word;
    column += word_width;
  }
  return lines;
}

std::string common_group(const std::vector<std::string>& paths) {
  if (paths.empty()) return "";
  const auto group_of = [](std::string_view path) { return path.substr(0, path.rfind('/')); };
  std::string_view group = group_of(paths.front());
  for (const std::string& path : paths) {
    while (!group.empty() && !path.starts_with(std::string(group) + "/")) group = group_of(group);
  }
  return std::string(group);
}

std::string_view shown_path(std::string_view path, std::string_view group) {
  if (!group.empty() && path.starts_with(group)) path.remove_prefix(group.size());
  return path.starts_with('/') ? path.substr(1) : path;
}

std::string group_remark(std::string_view group) {
  return group.empty() ? "" : fmt::format(" (all in {})", printable(std::string(group)));
}

}  // namespace tailrace::report
