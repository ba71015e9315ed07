// The ranks that execute a verb, and what they report meanwhile.
//
// A verb is the work of `tailrace repack`, `verify`, `info`, `export`, `recover` or `concat`, as a
// function from a request to a report: plain structs, nothing printed. Frontends fill the request
// and translate the report. Messages about invalid options use the command line's names for them,
// which are documented for the users of every frontend.
// Invariant: a verb returns the same Status on every rank and, unless it documents otherwise, the
// same report.

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

/// Agree on a Status: the same on every rank. Collective. For checks that all ranks make alike:
/// rank 0's failure becomes the failure of all ranks, without a rank number.
Status agree(Comm& comm, const Status& mine);
template <class T>
Result<T> agree(Comm& comm, Result<T> mine) {
  TAILRACE_TRY(agree(comm, mine.status()));
  return mine;
}

struct VerbRanks {
  Comm& comm;
  /// Creates another Comm of the same ranks, which an engine will own. Collective. Verify does not
  /// need it.
  std::function<std::unique_ptr<Comm>()> world;
  /// Receives one remark for the user, without a newline; called at rank 0 only. May be empty.
  std::function<void(const std::string&)> remark;
  /// Receives the progress of this rank's share from time to time. May be empty.
  std::function<void(std::uint64_t bytes_done, std::uint64_t bytes_total)> progress;

  bool is_root() const { return comm.is_root(); }
  Status agree(const Status& mine) const { return verbs::agree(comm, mine); }
  template <class T>
  Result<T> agree(Result<T> mine) const {
    return verbs::agree(comm, std::move(mine));
  }
  void report(const std::string& text) const {
    if (remark && is_root()) remark(text);
  }
  void show(std::uint64_t bytes_done, std::uint64_t bytes_total) const {
    if (progress) progress(bytes_done, bytes_total);
  }
};

/// True if `path` is a directory.
bool is_directory(const std::string& path);
/// Size of a file; 0 if it does not exist.
std::uint64_t file_bytes_of(const std::string& path);
/// Folder of an output; "." if the path has none.
std::string folder_of(const std::string& output);
/// Check before the work that the output's folder exists, and that it is writable. Not collective.
/// @error not_found, io_error  names output and folder.
Status check_folder_is_there(const std::string& output);
Status check_folder_is_writable(const std::string& output);

/// Split "a,b,c" at its commas; parts may be empty. An empty text has no parts.
std::vector<std::string> split_at_commas(std::string_view text);

/// Parse a list of paths, one a line. Skips blank lines and lines that start with '#', and trims
/// spaces around a path and a carriage return after it. Not collective.
/// @error invalid_argument  the text is not a list, or contains no path.
Result<std::vector<std::string>> parse_input_list(std::string_view text);

/// Determine the inputs that a user names, relative to the current directory: either `files` or the
/// lines of `list_path` ("-": standard input). Collective; every rank gets rank 0's result. Rank 0
/// reads a list once and broadcasts it, so that 32,000 ranks do not all open one file.
/// @error not_found, io_error  the list cannot be read.
/// @error invalid_argument  both or neither are given; or files are named twice (lists all of
/// them).
Result<std::vector<std::string>> read_inputs(Comm& comm, const std::vector<std::string>& files,
                                             const std::string& list_path);

}  // namespace tailrace::verbs
