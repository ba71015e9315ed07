// How numbers, paths and positions look in tables and sentences, alike in all programs.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/utf8.hpp"
#include "trz/base/box.hpp"
#include "trz/base/error_bound.hpp"

namespace tailrace::report {

/// "8.39 MB": three significant digits, powers of 1000, as all sizes and throughputs of the CLI.
std::string size_text(std::uint64_t n_bytes);
/// "0.532 s", "84.1 s", "2 min 05 s".
std::string seconds_text(double seconds);
/// Uncompressed bytes per second in MB/s (10^6), without the unit; "-" if there is no time to speak
/// of.
std::string throughput_text(std::uint64_t n_bytes, double seconds);
/// "13.2"; "-" if the encoded size is 0.
std::string ratio_text(std::uint64_t raw_bytes, std::uint64_t encoded_bytes);
/// "99.8%": an error as a share of its bound; "0" if there is none.
std::string share_text(double error, double bound);
/// "rel=0.001" or "exact".
std::string bound_column_text(const ErrorBound& bound);
/// "[3, 14, 15]"; "[]" for a scalar.
std::string position_text(const Shape& position);
/// Text that fits `width` columns: longer text loses its middle ("native_f~density").
std::string shorten_middle(std::string_view text, std::size_t width);
/// Columns that output may take. A program that prints to a terminal says so once, at its start.
struct TextRoom {
  std::size_t prose = 80;      ///< Of sentences; 0: one stays on its line, however long.
  std::size_t table = 0;       ///< Of tables; 0: as many as they need.
  bool may_leave_out = false;  ///< A table may lack columns, and paths their middle, to fit.
};
/// That of this process. Not thread-safe: set before threads start.
TextRoom& text_room();
/// What the environment and the file descriptor say. A terminal has its width (COLUMNS, if that is
/// set, goes before it), and what does not fit may be left out. Everything else keeps all data:
/// pipes and files have any width unless COLUMNS says one, so that a sentence can be searched for.
/// A terminal that does not know its width, such as launchers of MPI put between, has sentences as
/// pipes have them, and tables as for 80 columns.
TextRoom room_of(int descriptor);
/// `text`, made printable, beside `taken` columns of its line: its middle is left out where the
/// room asks for it.
std::string fitted(std::string_view text, std::size_t taken);
/// Columns that printable UTF-8 text takes up.
std::size_t display_width(std::string_view text);
/// Lines of at most `width` columns (0: as the room is, which may be any width), broken at spaces;
/// later lines begin with `indent` spaces, and the first one is taken to begin in column
/// `first_column`. The sentence is made printable before, and its own newlines are escaped.
std::string wrapped(std::string_view sentence, std::size_t indent, std::size_t first_column = 0,
                    std::size_t width = 0);
/// The group that all paths lie in ("/native_fields"), if it is worth naming once; else "".
std::string common_group(const std::vector<std::string>& paths);
/// A path as tables print it: without the common group and the slash before it. Not printable yet:
/// a table's cell and wrapped() make it so.
std::string_view shown_path(std::string_view path, std::string_view group);
/// " (all in /native_fields)" for a line above a table of shown_path()s; "" without a group.
std::string group_remark(std::string_view group);

}  // namespace tailrace::report
