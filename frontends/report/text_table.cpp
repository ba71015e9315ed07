// Fitting and printing of tables.

#include "text_table.hpp"

#include <algorithm>
#include <utility>

#include "number_text.hpp"

namespace tailrace::report {
namespace {

constexpr std::size_t column_gap = 2;

/// All used columns and the gaps between them.
std::size_t total_width(const std::vector<std::size_t>& widths) {
  std::size_t total = 0;
  for (const std::size_t width : widths) total += width > 0 ? width + column_gap : 0;
  return total > 0 ? total - column_gap : 0;
}

/// The two lines of a heading; a single one stands in the lower.
std::pair<std::string, std::string> heading_lines(const std::string& heading) {
  const std::size_t newline = heading.find('\n');
  if (newline == std::string::npos) return {"", heading};
  return {heading.substr(0, newline), heading.substr(newline + 1)};
}

}  // namespace

TextTable::TextTable(std::string_view columns) {
  for (std::size_t from = 0; from <= columns.size();) {
    const std::size_t to = std::min(columns.find('|', from), columns.size());
    std::string_view heading = columns.substr(from, to - from);
    TableColumn& column = columns_.emplace_back();
    column.right = heading.starts_with('>');
    if (column.right) heading.remove_prefix(1);
    const std::size_t tilde = std::min(heading.find('~'), heading.size());
    for (const char digit : heading.substr(std::min(tilde + 1, heading.size()))) {
      column.least_width = 10 * column.least_width + static_cast<std::size_t>(digit - '0');
    }
    column.heading = heading.substr(0, tilde);
    from = to + 1;
  }
}

void TextTable::add_row(std::vector<std::string> cells) {
  cells.resize(columns_.size());
  rows_.push_back(std::move(cells));
}

void TextTable::add_rule() { rows_.emplace_back(); }

std::vector<std::size_t> TextTable::fitted_widths(std::size_t width) const {
  std::vector<std::size_t> widths(columns_.size(), 0);
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
  while (total_width(widths) > width) {
    std::size_t widest = columns_.size();
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      const std::size_t least = columns_[c].least_width;
      if (least == 0 || widths[c] <= least) continue;
      if (widest == columns_.size() || widths[c] > widths[widest]) widest = c;
    }
    if (widest == columns_.size()) break;
    --widths[widest];
  }
  return widths;
}

std::string TextTable::text(std::size_t width) const {
  const std::vector<std::size_t> widths = fitted_widths(width);
  std::string out;
  const auto print_line = [&](const auto& cell_of) {
    std::string line;
    bool first = true;
    for (std::size_t c = 0; c < columns_.size(); ++c) {
      if (widths[c] == 0) continue;
      if (!first) line += std::string(column_gap, ' ');
      first = false;
      const std::string cell = shorten_middle(cell_of(c), widths[c]);
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
      out += std::string(std::min(total_width(widths), width), '-') + '\n';
    } else {
      print_line([&](std::size_t c) { return row[c]; });
    }
  }
  return out;
}

}  // namespace tailrace::report
