// TextTable: rows of text under headings, fitted into the room that the output has.
//
// A column in which every cell is empty is left out. A table that is too wide is fitted in steps,
// each only as far as is needed:
//
//   1  cells that may be wrapped continue on a line below, broken at spaces, else behind a '/',
//      '_', ',' or '.'; the widest column first
//   2  columns that may be left out are, and a line below names them (only with may_leave_out)
//   3  the table continues below itself: the columns that have no room follow in another table of
//      the same rows, behind the first column
//
// So no line is longer than the room, unless the first column and one other are.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "number_text.hpp"

namespace tailrace::report {

struct TableColumn {
  std::string heading;          ///< One line, or two with a '\n' between them.
  bool right = false;           ///< Numbers stand to the right.
  std::size_t least_width = 0;  ///< The cells may be wrapped, down to this width; 0: never.
  std::size_t left_out = 0;     ///< Those of 1 are left out first, then those of 2, ...; 0: never.
};

class TextTable {
 public:
  explicit TextTable(std::vector<TableColumn> columns) : columns_(std::move(columns)) {}
  /// Parse headings with '|' between them. '>' before a heading aligns it to the right. Behind it,
  /// '/' and a number give least_width, '?' and a number left_out:
  /// "field/14|type?1|>absolute\nbound|remark/20".
  explicit TextTable(std::string_view columns);

  /// One cell per column, made printable: a name cannot begin another row.
  void add_row(std::vector<std::string> cells);
  /// A horizontal line before the next row.
  void add_rule();
  bool empty() const { return rows_.empty(); }
  /// The whole table, each line ended by a newline.
  std::string text() const { return text(text_room()); }
  std::string text(const TextRoom& room) const;

 private:
  using Widths = std::vector<std::size_t>;  ///< Of each column; 0: it is left out.

  Widths natural_widths() const;
  /// `widths`, made less until they fit, or as far as their columns allow.
  Widths narrowed(Widths widths, const TextRoom& room) const;
  /// One table of the columns that have a width.
  std::string block(const Widths& widths) const;
  /// Tables below each other, of as many columns as fit behind the first one.
  std::string blocks(const Widths& natural, const TextRoom& room) const;

  std::vector<TableColumn> columns_;
  std::vector<std::vector<std::string>> rows_;  ///< An empty row is a rule.
};

}  // namespace tailrace::report
