// What every command shares: who may print, which exit code a failure becomes, how numbers look.
//
// Invariant: only rank 0 prints, once; every rank returns the same exit code. A command first lets
// all ranks agree on what went wrong (settle), then reports it.

#pragma once

#include <cstdint>
#include <fstream>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/box.hpp"
#include "core/comm.hpp"
#include "core/dtype.hpp"
#include "core/error_bound.hpp"
#include "core/status.hpp"
#include "exec/comm_factory.hpp"

namespace tailrace::cli {

/// The exit codes that scripts may rely on.
inline constexpr int exit_done = 0;
inline constexpr int exit_check_failed = 1;
inline constexpr int exit_usage = 2;
inline constexpr int exit_resources = 3;

/// The exit code that a failure of this kind ends the program with.
int exit_code(Code code);

/// One command's run: the ranks, and what its messages begin with.
struct Session {
  MpiSession& mpi;
  Comm& comm;
  std::string command;  ///< "repack": messages begin with "tailrace repack: ".

  bool speaks() const { return comm.is_root(); }
  /// The same Status on every rank. Collective. For checks that all ranks make alike: rank 0's
  /// failure is everybody's and carries no rank number.
  Status settle(const Status& mine) const;
  /// Print the failure once (rank 0) and return its exit code. Not collective.
  int fail(const Status& failure) const;
  /// Print one remark on stderr (rank 0).
  void remark(std::string_view text) const;
};

/// A text file that rank 0 opens before the work and fills after it, so that a path that cannot be
/// written is found out at once. The path "-" is stdout. Other ranks hold it empty.
class ReportFile {
 public:
  /// @error io_error, not_found  names the path. An empty path is fine: nothing will be written.
  Status open(const std::string& path, bool speaks);
  bool wanted() const { return wanted_; }
  bool to_stdout() const { return to_stdout_; }
  /// Write everything and close. @error io_error, no_space
  Status finish(std::string_view text);

 private:
  std::string path_;
  std::ofstream stream_;
  bool wanted_ = false;
  bool to_stdout_ = false;
};

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
/// "1 chunk", "3 chunks".
std::string counted(std::uint64_t count, std::string_view noun);
/// "[3, 14, 15]" for a row-major position in a shape; "[]" for a scalar.
std::string position_text(const Shape& shape, std::uint64_t index);
/// Text that fits `width` columns: longer text loses its middle ("native_f~density").
std::string shorten_middle(std::string_view text, std::size_t width);
/// Columns that UTF-8 text takes up.
std::size_t display_width(std::string_view text);
/// Lines of at most `width` columns, broken at spaces; later lines begin with `indent` spaces, and
/// the first one is taken to begin in column `first_column`.
std::string wrapped(std::string_view text, std::size_t indent, std::size_t first_column = 0,
                    std::size_t width = 100);
/// The group that all paths lie in ("/native_fields"), if it is worth naming once; else "".
std::string common_group(const std::vector<std::string>& paths);
/// A path as tables print it: without the common group and the slash before it.
std::string_view shown_path(std::string_view path, std::string_view group);
/// " (all in /native_fields)" for a line above a table of shown_path()s; "" without a group.
std::string group_remark(std::string_view group);
/// A JSON document, indented, with each array of plain numbers on one line.
std::string json_text(const nlohmann::ordered_json& document);
/// Whether `path` is a directory.
bool is_directory(const std::string& path);
/// Encode threads of each rank: as many as asked for or, for 0, the cores over the node's ranks.
std::uint64_t threads_of_each(std::uint64_t n_asked, const Comm& comm);
/// Bytes in a file; 0 if there is none.
std::uint64_t file_bytes_of(const std::string& path);

}  // namespace tailrace::cli
