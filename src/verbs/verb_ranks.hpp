// The ranks that do a verb's work, and what they tell while it lasts.
//
// A verb is what `tailrace repack`, `verify`, `info`, `export`, `recover` and `concat` do, as a
// function from a request to a report: plain structs, nothing printed. Frontends fill the request
// and translate the report. Where words of a user are at fault, the message names the command
// line's option, which every frontend's users read in the same documentation.
// Invariant: a verb returns the same Status on every rank and, where it says nothing else, the same
// report.

#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/comm.hpp"
#include "trz/base/status.hpp"

namespace tailrace::verbs {

/// The same Status on every rank. Collective. For checks that all ranks make alike: rank 0's
/// failure is everybody's and carries no rank number.
Status settle(Comm& comm, const Status& mine);
template <class T>
Result<T> settle(Comm& comm, Result<T> mine) {
  TAILRACE_TRY(settle(comm, mine.status()));
  return mine;
}

struct VerbRanks {
  Comm& comm;
  /// Another Comm of the same ranks, for an engine to own. Collective. Verify needs none.
  std::function<std::unique_ptr<Comm>()> world;
  /// One remark for the user, without a newline; called at rank 0 only. May be empty.
  std::function<void(const std::string&)> remark;
  /// How far this rank's share is, from time to time. May be empty.
  std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_total)> progress;

  bool is_root() const { return comm.is_root(); }
  Status settle(const Status& mine) const { return verbs::settle(comm, mine); }
  template <class T>
  Result<T> settle(Result<T> mine) const {
    return verbs::settle(comm, std::move(mine));
  }
  void say(const std::string& text) const {
    if (remark && is_root()) remark(text);
  }
  void show(std::uint64_t bytes_done, std::uint64_t bytes_total) const {
    if (progress) progress(bytes_done, bytes_total);
  }
};

/// Whether `path` is a directory.
bool is_directory(const std::string& path);
/// Bytes in a file; 0 if there is none.
std::uint64_t file_bytes_of(const std::string& path);
/// "." where the path names none.
std::string folder_of(const std::string& output);
/// Whether there is a folder for this output, and whether it takes files: found out before the
/// work. Not collective. @error not_found, io_error  names both.
Status check_folder_is_there(const std::string& output);
Status check_folder_is_writable(const std::string& output);

/// The parts of "a,b,c", empty ones too; none of an empty text.
std::vector<std::string> split_at_commas(std::string_view text);

/// The paths in the text of a list: one a line, in their order; blank lines and lines that begin
/// with '#' are left out, spaces around a path and a carriage return after it, too.
/// Not collective. @error invalid_argument  the text is no list, or names nothing.
Result<std::vector<std::string>> parse_input_list(std::string_view text);

/// The inputs that a user names: either `files` or the lines of `list_path` ("-": standard input),
/// relative to the current directory. Collective; the same on every rank, as rank 0 sees them: a
/// list is read once and broadcast, so that 32,000 ranks do not all open one file.
/// @error not_found, io_error  the list cannot be read.
/// @error invalid_argument  both or neither are given; files are named twice: all of these.
Result<std::vector<std::string>> read_inputs(Comm& comm, const std::vector<std::string>& files,
                                             const std::string& list_path);

}  // namespace tailrace::verbs
