// TextTable: rows of text under headings, fitted into a terminal of 100 columns.
//
// A column in which every cell is empty is left out. If the table is too wide, the columns that
// allow it are shortened in the middle until it fits, the widest first.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tailrace::report {

struct TableColumn {
  std::string heading;          ///< One line, or two with a '\n' between them.
  bool right = false;           ///< Numbers stand to the right.
  std::size_t least_width = 0;  ///< May be shortened in the middle down to this; 0: never.
};

class TextTable {
 public:
  explicit TextTable(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}
  /// Headings with '|' between them; '>' before one that stands to the right, '~' and its
  /// least_width behind one that may be shortened: "field~14|type|>absolute\nbound".
  explicit TextTable(std::string_view columns);

  /// One cell per column.
  void add_row(std::vector<std::string> cells);
  /// A horizontal line before the next row.
  void add_rule();
  bool empty() const { return rows_.empty(); }
  /// The whole table, each line ended by a newline.
  std::string text(std::size_t width = 100) const;

 private:
  std::vector<std::size_t> fitted_widths(std::size_t width) const;

  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;  ///< An empty row is a rule.
};

}  // namespace tailrace::report
