// Format of numbers, paths and positions in tables and sentences, shared by all programs.

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

/// "8.39 MB": three significant digits, powers of 1000, for all sizes and throughputs of the CLI.
std::string size_text(std::uint64_t n_bytes);
/// "0.532 s", "84.1 s", "2 min 05 s".
std::string seconds_text(double seconds);
/// Uncompressed bytes per second in MB/s (10^6), without the unit; "-" if the time is too short.
std::string throughput_text(std::uint64_t n_bytes, double seconds);
/// "13.2"; "-" if the encoded size is 0.
std::string ratio_text(std::uint64_t raw_bytes, std::uint64_t encoded_bytes);
/// "99.8%": an error as a share of its bound; "0" for an error of 0.
std::string share_text(double error, double bound);
/// "rel=0.001" or "exact".
std::string bound_column_text(const ErrorBound& bound);
/// "[3, 14, 15]"; "[]" for a scalar.
std::string position_text(const Shape& position);
/// Text that fits `width` columns: longer text loses its middle ("native_f~density").
std::string shorten_middle(std::string_view text, std::size_t width);
/// Columns available to output. A program that prints to a terminal sets them once, at its start.
struct TextRoom {
  std::size_t prose = 80;      ///< Sentences; 0: each on one line, however long.
  std::size_t table = 0;       ///< Tables; 0: as many as they need.
  bool may_leave_out = false;  ///< Tables may drop columns, and paths their middle, to fit.
};
/// TextRoom of this process. Not thread-safe: set it before threads start.
TextRoom& text_room();
/// Room that the environment and the file descriptor offer. COLUMNS, if set, overrides the width of
/// a terminal. A terminal of known width may leave out what does not fit. All other output keeps
/// all data. Pipes and files have unlimited width unless COLUMNS is set, so that a sentence can be
/// searched for. A terminal of unknown width (an MPI launcher may hide it) gets unlimited sentences
/// and tables of 80 columns.
TextRoom room_of(int descriptor);
/// `text`, made printable, for a line on which `taken` columns are used. Loses its middle if
/// text_room() allows that and the line is too narrow.
std::string fitted(std::string_view text, std::size_t taken);
/// Columns that printable UTF-8 text occupies.
std::size_t display_width(std::string_view text);
/// Byte position of character number `n_characters`, from 0; the length if there are fewer.
std::size_t byte_of_character(std::string_view text, std::size_t n_characters);
/// The sentence, broken at spaces into lines of at most `width` columns; 0: the width of
/// text_room(), which may be unlimited. Later lines are indented by `indent` spaces; the first line
/// starts in column `first_column`. The sentence is made printable first, which escapes its
/// newlines.
std::string wrapped(std::string_view sentence, std::size_t indent, std::size_t first_column = 0,
                    std::size_t width = 0);
/// Group that contains all paths ("/native_fields"), if it is worth naming once; else "".
std::string common_group(const std::vector<std::string>& paths);
/// Path as tables print it: without the common group and the slash before it. Not yet printable:
/// TextTable::add_row() and wrapped() make it so.
std::string_view shown_path(std::string_view path, std::string_view group);
/// " (all in /native_fields)" for a line above a table of shown_path()s; "" without a group.
std::string group_remark(std::string_view group);

}  // namespace tailrace::report
