// What every command shares: who may print, which exit code a failure becomes, where reports go.
//
// Invariant: only rank 0 prints, once; every rank returns the same exit code. A command first lets
// all ranks agree on what went wrong (settle), then reports it.

#pragma once

#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/comm.hpp"
#include "exec/comm_factory.hpp"
#include "hdf5/file_names.hpp"
#include "report/number_text.hpp"
#include "report/report_json.hpp"
#include "report/text_table.hpp"
#include "trz/base/printable.hpp"
#include "trz/base/status.hpp"
#include "verbs/verb_ranks.hpp"

namespace tailrace::cli {

using namespace report;
using verbs::is_directory;
using verbs::json_schema_version;
using verbs::split_at_commas;

/// One line on stderr that moves, if stderr is a terminal; otherwise nothing at all.
class ProgressBar {
 public:
  /// @param shown  false keeps it silent (other ranks, --quiet). A pipe or file is silent too.
  ProgressBar(std::string label, bool shown);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// Clears the line, so that what is printed next starts on a clean one.
  ~ProgressBar();

  /// Draw, at most ten times a second. Bytes are uncompressed ones.
  void update(std::uint64_t bytes_done, std::uint64_t bytes_total);
  /// The same for work that is not counted in bytes. @param share  done, in [0, 1].
  void update_share(double share, const std::string& what);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  /// Whether it is time to draw again.
  bool due();
  void draw(double share, const std::string& what);

  std::string label_;
  bool shown_ = false;
  bool drawn_ = false;
  Clock::time_point start_;
  Clock::time_point last_drawn_;
};

/// The exit codes that scripts may rely on.
inline constexpr int exit_done = 0;
inline constexpr int exit_check_failed = 1;
inline constexpr int exit_usage = 2;
inline constexpr int exit_resources = 3;

/// The exit code that a failure of this kind ends the program with.
int exit_code(Code code);

/// What a program does last: its words on stdout must have arrived. @returns `code`, or, with a
/// line on stderr, that of a failure. Not collective.
int end_of_output(std::string_view program, int code);

/// Print text on stdout. Escapes what a name must not do to a terminal; newlines stay, so that
/// names pass through a table, wrapped(), fitted() or printable() before.
void print_text(std::string_view text);
/// Print lines on stderr, escaped likewise. Where a person reads a line, it goes on below itself;
/// scripts get one line.
void print_to_stderr(std::string_view lines);

/// One command's run: the ranks, and what its messages begin with.
struct Session {
  MpiSession& mpi;
  Comm& comm;
  std::string command;  ///< "repack": messages begin with "tailrace repack: ".
  std::string program = "tailrace";

  bool speaks() const { return comm.is_root(); }
  /// The same Status on every rank. Collective. For checks that all ranks make alike: rank 0's
  /// failure is everybody's and carries no rank number.
  Status settle(const Status& mine) const { return verbs::settle(comm, mine); }
  template <class T>
  Result<T> settle(Result<T> mine) const {
    return verbs::settle(comm, std::move(mine));
  }
  /// Print the failure once (rank 0) and return its exit code. Not collective.
  int fail(const Status& failure) const;
  /// Print one remark on stderr (rank 0), as one line whatever names are in it.
  void remark(std::string_view text) const;
  /// These ranks for a verb, which moves `bar` and, unless it is to be quiet, makes remarks.
  verbs::VerbRanks for_verb(bool quiet, ProgressBar& bar) const;

 private:
  void say(std::string_view lines) const;
};

/// Make HDF5 ready to read: plug-ins are looked for in these folders first, and chunks of our own
/// codecs need none. Must come before the first HDF5 call. Collective.
Status start_hdf5(const Session& session, const std::string& plugin_folders);

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

/// An output that appears whole or not at all: NAME.partial until it is finished, so that an older
/// NAME stays.
class WholeFile {
 public:
  /// @error already_exists, not_found, io_error  before any work was done.
  Status open(const std::string& path, bool force);
  Status finish(std::string_view text);
  ~WholeFile();

 private:
  std::string partial() const { return path_ + partial_suffix; }
  std::string path_;
  bool force_ = false;
  ReportFile report_;
};

/// What a command shows of its report; rank 0's counts.
struct Shown {
  std::string text;                  ///< On stdout, unless it is to be quiet or JSON is there.
  std::string json;                  ///< In the file that was asked for.
  std::vector<std::string> remarks;  ///< On stderr, after the text.
  int code = exit_done;              ///< The same on every rank.
};

/// The frame of a command with a report: opens the JSON file, so that a path that cannot be written
/// is found out at once, works, and shows what came of it. Collective.
/// @param work  collective; returns the same Status on every rank.  @returns the exit code.
int run_and_show(const Session& session, const std::string& json_path, bool quiet,
                 const std::function<Result<Shown>()>& work);

/// Work that rank 0 does alone while the others wait for its verdict. Collective.
Result<Shown> at_root(const Session& session, const std::function<Result<Shown>()>& work);
/// The same for work that shows by itself what came of it. @returns the exit code.
int run_at_root(const Session& session, const std::function<Status()>& work);

/// A whole text file. Not collective. @error not_found  names `what`, or else the path.
Result<std::string> read_text_file(const std::string& path, const std::string& what = "");
/// Whether charts can be drawn there. @error invalid_argument  neither .png nor .svg.
Status check_plot_path(const std::string& path);
/// What every JSON document begins with.
nlohmann::ordered_json document_of(std::string_view command);

}  // namespace tailrace::cli
