// Fitting and printing of tables.

#include "text_table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <sstream>
#include <utility>

#include "trz/base/printable.hpp"

namespace tailrace::report {
namespace {

constexpr std::size_t kColumnGap = 2;

/// Width of all used columns and the gaps between them.
std::size_t total_width(const std::vector<std::size_t>& widths) {
  std::size_t total = 0;
  for (const std::size_t width : widths) total += width > 0 ? width + kColumnGap : 0;
  return total > 0 ? total - kColumnGap : 0;
}

/// The two lines of a heading; a heading of one line goes into the lower one.
std::pair<std::string, std::string> heading_lines(const std::string& heading) {
  const std::size_t newline = heading.find('\n');
  if (newline == std::string::npos) return {"", heading};
  return {heading.substr(0, newline), heading.substr(newline + 1)};
}

bool is_digit(char letter) { return letter >= '0' && letter <= '9'; }

/// Remove a mark and its number from the end of a heading. "MB/s" and "at 16" have no mark.
bool take_mark(std::string_view& heading, TableColumn& column) {
  std::size_t at = heading.size();
  while (at > 0 && is_digit(heading[at - 1])) --at;
  if (at == heading.size() || at == 0) return false;
  const char mark = heading[at - 1];
  if (mark != '/' && mark != '?') return false;
  std::size_t number = 0;
  std::from_chars(heading.data() + at, heading.data() + heading.size(), number);
  (mark == '?' ? column.left_out : column.least_width) = number;
  heading = heading.substr(0, at - 1);
  return true;
}

/// True if a word may be broken before byte `at`: behind a separator, but not within a number.
bool may_break(std::string_view word, std::size_t at) {
  const bool in_number = word[at - 1] == '.' && at < word.size() && is_digit(word[at]);
  return !in_number && std::string_view("/_,.").find(word[at - 1]) != std::string_view::npos;
}

/// Append a word in parts of at most `width` columns, broken behind a separator, else anywhere.
void break_word(std::string_view word, std::size_t width, std::vector<std::string>& lines) {
  while (display_width(word) > width) {
    const std::size_t end = byte_of_character(word, width);
    std::size_t part = end;
    while (part > 0 && !may_break(word, part)) --part;
    if (part == 0) part = end;
    lines.emplace_back(word.substr(0, part));
    word.remove_prefix(part);
  }
  lines.emplace_back(word);
}

/// Lines of a cell in a column of this width.
std::vector<std::string> cell_lines(const std::string& cell, std::size_t width) {
  if (display_width(cell) <= width) return {cell};
  std::vector<std::string> lines;
  std::istringstream all(wrapped(cell, 0, 0, width));
  for (std::string line; std::getline(all, line);) break_word(line, width, lines);
  return lines;
}

}  // namespace

TextTable::TextTable(std::string_view columns) {
  for (std::size_t from = 0; from <= columns.size();) {
    const std::size_t to = std::min(columns.find('|', from), columns.size());
    std::string_view heading = columns.substr(from, to - from);
    TableColumn& column = columns_.emplace_back();
    column.right = heading.starts_with('>');
    if (column.right) heading.remove_prefix(1);
    while (take_mark(heading, column)) continue;
    column.heading = heading;
    from = to + 1;
  }
}

void TextTable::add_row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  for (std::string& cell : cells) cell = printable(std::move(cell));
  rows_.push_back(std::move(cells));
}

void TextTable::add_rule() { rows_.emplace_back(); }

TextTable::Widths TextTable::natural_widths() const {
  Widths widths(columns_.size(), 0);
  for (const auto& row : rows_) {
    for (std::size_t c = 0; c < row.size(); ++c) {
      widths[c] = std::max(widths[c], display_width(row[c]));
    }
  }
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    const auto [upper, lower] = heading_lines(columns_[c].heading);
    if (widths[c] > 0) {
      widths[c] = std::max({widths[c], display_width(upper), display_width(lower)});
    }
  }
  return widths;
}

TextTable::Widths TextTable::narrowed(Widths widths, const TextRoom& room) const {
  Widths least(columns_.size(), 0);
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (columns_[c].least_width == 0) continue;
    const auto [upper, lower] = heading_lines(columns_[c].heading);
    least[c] = std::max({columns_[c].least_width, display_width(upper), display_width(lower)});
    if (room.may_leave_out) continue;
    for (const auto& row : rows_) {  // Programs read a pipe: no word is broken.
      std::istringstream words(c < row.size() ? row[c] : std::string());
      for (std::string word; words >> word;) least[c] = std::max(least[c], display_width(word));
    }
  }
  while (total_width(widths) > room.table) {
    std::size_t widest = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (least[c] == 0 || widths[c] <= least[c]) continue;
      if (widest == columns_.size() || widths[c] > widths[widest]) widest = c;
    }
    if (widest == columns_.size()) break;
    --widths[widest];
  }
  return widths;
}

std::string TextTable::text(const TextRoom& room) const {
  Widths natural = natural_widths();
  if (room.table == 0) return block(natural);
  Widths widths = narrowed(natural, room);
  std::string missing;
  for (std::size_t turn = 1; room.may_leave_out && turn <= columns_.size(); ++turn) {
    if (total_width(widths) <= room.table) break;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (columns_[c].left_out != turn || natural[c] == 0) continue;
      const auto [upper, lower] = heading_lines(columns_[c].heading);
      missing += (missing.empty() ? "" : "; ") + upper + (upper.empty() ? "" : " ") + lower;
      natural[c] = 0;
    }
    widths = narrowed(natural, room);
  }
  std::string out = total_width(widths) <= room.table ? block(widths) : blocks(natural, room);
  if (missing.empty()) return out;
  return out + wrapped("(no room for: " + missing + ")", 1, 0, room.prose) + "\n";
}

std::string TextTable::blocks(const Widths& natural, const TextRoom& room) const {
  std::string out;
  for (std::size_t from = 1; from < columns_.size();) {
    Widths part(columns_.size(), 0);
    part[0] = natural[0];
    Widths fitting = part;
    std::size_t n_columns = 0;
    std::size_t to = from;
    for (; to < columns_.size(); ++to) {
      part[to] = natural[to];
      const Widths narrow = narrowed(part, room);
      if (n_columns > 0 && total_width(narrow) > room.table) break;
      fitting = narrow;
      if (natural[to] > 0) ++n_columns;
    }
    if (n_columns > 0) out += (out.empty() ? "" : "\n") + block(fitting);
    from = to;
  }
  return out;
}

std::string TextTable::block(const Widths& widths) const {
  std::string out;
  const auto print_line = [&](const auto& cell_of) {
    std::string line;
    bool first = true;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (widths[c] == 0) continue;
      if (!first) line += std::string(kColumnGap, ' ');
      first = false;
      const std::string cell = cell_of(c);
      const std::string pad(widths[c] - std::min(widths[c], display_width(cell)), ' ');
      line += columns_[c].right ? pad + cell : cell + pad;
    }
    out += line.substr(0, line.find_last_not_of(' ') + 1) + '\n';
  };
  bool two_lines = false;
  for (std::size_t c = 0; c < columns_.size(); ++c) {
    if (widths[c] > 0 && !heading_lines(columns_[c].heading).first.empty()) two_lines = true;
  }
  if (two_lines)
    print_line([&](std::size_t c) { return heading_lines(columns_[c].heading).first; });
  print_line([&](std::size_t c) { return heading_lines(columns_[c].heading).second; });
  for (const auto& row : rows_) {
    if (row.empty()) {
      out += std::string(total_width(widths), '-') + '\n';
      continue;
    }
    std::vector<std::vector<std::string>> lines;
    std::size_t n_lines = 1;
    for (std::size_t c = 0; c < row.size(); ++c) {
      lines.push_back(widths[c] > 0 ? cell_lines(row[c], widths[c]) : std::vector<std::string>());
      if (widths[c] > 0) n_lines = std::max(n_lines, lines[c].size());
    }
    for (std::size_t l = 0; l < n_lines; ++l) {
      print_line([&](std::size_t c) { return l < lines[c].size() ? lines[c][l] : std::string(); });
    }
  }
  return out;
}

}  // namespace tailrace::report
