// TextTable: rows of text under headings, fitted to the width that the output has.
//
// Columns of empty cells are left out. A table that is too wide is fitted in these steps, each
// applied only as far as needed; step 2 needs may_leave_out:
//
// 1. Cells that may be wrapped continue below, broken at spaces, else behind '/', '_', ',' or '.'.
//    The widest column comes first. Words are broken only with may_leave_out.
// 2. Columns that may be left out are dropped, and a line below the table names them.
// 3. The remaining columns continue in another table below, with the same rows and the same first
//    column.
//
// So no line exceeds the width, unless the first column and one other already do.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "number_text.hpp"

namespace tailrace::report {

struct TableColumn {
  std::string heading;          ///< One line, or two with a '\n' between them.
  bool right = false;           ///< Aligned right, as numbers are.
  std::size_t least_width = 0;  ///< The cells may be wrapped, down to this width; 0: never.
  std::size_t left_out = 0;     ///< Order of dropping: columns of 1 first, then of 2; 0: never.
};

class TextTable {
 public:
  explicit TextTable(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}
  /// Parse headings with '|' between them. '>' before a heading aligns it to the right. Behind it,
  /// '/' and a number give least_width, '?' and a number left_out:
  /// "field/14|type?1|>absolute\nbound|remark/20".
  explicit TextTable(std::string_view columns);

  /// Add one cell per column. Cells are made printable, so that a name cannot start another row.
  void add_row(std::vector<std::string> cells);
  /// Draw a horizontal line before the next row.
  void add_rule();
  bool empty() const { return rows_.empty(); }
  /// The complete table; each line ends with a newline.
  std::string text() const { return text(text_room()); }
  std::string text(const TextRoom& room) const;

 private:
  using Widths = std::vector<std::size_t>;  ///< Width of each column; 0: left out.

  Widths natural_widths() const;
  /// `widths`, reduced until the table fits or no column can shrink further.
  Widths narrowed(Widths widths, const TextRoom& room) const;
  /// One table of the columns whose width is not 0.
  std::string block(const Widths& widths) const;
  /// Tables below each other; each shows the first column and as many others as fit.
  std::string blocks(const Widths& natural, const TextRoom& room) const;

  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;  ///< An empty row is a horizontal line.
};

}  // namespace tailrace::report
