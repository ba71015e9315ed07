// Parts that all commands share: output by rank 0, exit codes of failures, files of reports.
//
// Invariant: only rank 0 prints, once, and every rank returns the same exit code. All ranks of a
// command first agree on a failure; then rank 0 reports it.

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
using verbs::kJsonSchemaVersion;
using verbs::split_at_commas;

/// One line on stderr, redrawn in place. Prints nothing if stderr is not a terminal.
class ProgressBar {
 public:
  /// @param shown  false: print nothing (other ranks, --quiet). A pipe or file gets nothing either.
  ProgressBar(std::string label, bool shown);
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;
  /// Clears the line, so that later output starts on an empty line.
  ~ProgressBar();

  /// Draw the bar, at most ten times a second. Bytes are uncompressed bytes.
  void update(std::uint64_t bytes_done, std::uint64_t bytes_total);
  /// Draw the bar for work that is not counted in bytes. @param share  completed share, in [0, 1].
  void update_share(double share, const std::string& what);
  void clear();

 private:
  using Clock = std::chrono::steady_clock;
  /// True if it is time to draw again.
  bool due();
  void draw(double share, const std::string& what);

  std::string label_;
  bool shown_ = false;
  bool drawn_ = false;
  Clock::time_point start_;
  Clock::time_point last_drawn_;
};

/// Exit codes; scripts may rely on them.
inline constexpr int kExitDone = 0;
inline constexpr int kExitCheckFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitResources = 3;

/// Exit code of a program that ends with a failure of this kind.
int exit_code(Code code);

/// Flush stdout at the end of a program. @returns `code`, unless stdout has failed: then the
/// failure goes to stderr and a failing code is returned. Not collective.
int end_of_output(std::string_view program, int code);

/// Print text on stdout. Escapes characters that could control a terminal, except newlines. Names
/// must therefore pass through a table, wrapped(), fitted() or printable() first.
void print_text(std::string_view text);
/// Print lines on stderr, with the same escapes. On a terminal, long lines are wrapped; scripts get
/// one line.
void print_to_stderr(std::string_view lines);

/// One run of a command: its ranks and the prefix of its messages.
struct Session {
  MpiSession& mpi;
  Comm& comm;
  std::string command;  ///< "repack": messages start with "tailrace repack: ".
  std::string program = "tailrace";

  bool speaks() const { return comm.is_root(); }
  /// Agree on a Status, which is the same on every rank afterwards. Collective. For checks that all
  /// ranks make alike: a failure of rank 0 becomes the result, without a rank number.
  Status agree(const Status& mine) const { return verbs::agree(comm, mine); }
  template <class T>
  Result<T> agree(Result<T> mine) const {
    return verbs::agree(comm, std::move(mine));
  }
  /// Print the failure once, on rank 0, and return its exit code. Not collective.
  int fail(const Status& failure) const;
  /// Print one remark on stderr, on rank 0: one line whatever the names contain.
  void remark(std::string_view text) const;
  /// Ranks for a verb, which updates `bar` and, unless `quiet`, prints remarks.
  verbs::VerbRanks for_verb(bool quiet, ProgressBar& bar) const;

 private:
  void print_line(std::string_view lines) const;
};

/// Prepare HDF5 for reading: search these folders for plug-ins first, and register our own codecs,
/// which need no plug-in. Call before any HDF5 function. Collective.
Status start_hdf5(const Session& session, const std::string& plugin_folders);

/// Text file that rank 0 opens before the work and fills after it, so that a path that cannot be
/// written fails early. The path "-" is stdout. On other ranks the object does nothing.
class ReportFile {
 public:
  /// Open for writing; an empty path is valid and writes nothing.
  /// @error io_error, not_found  names the path.
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

/// Output file that appears completely or not at all: it is NAME.partial until finish(), so that an
/// older NAME survives a failure.
class WholeFile {
 public:
  /// @error invalid_argument, already_exists, not_found, io_error  before any work is done.
  Status open(const std::string& path, bool force);
  Status finish(std::string_view text);
  ~WholeFile();

 private:
  std::string partial() const { return partial_path_of(path_); }
  std::string path_;
  bool force_ = false;
  ReportFile report_;
};

/// Output of a command; only that of rank 0 is printed.
struct Shown {
  std::string text;                  ///< Printed on stdout, unless --quiet or the JSON goes there.
  std::string json;                  ///< Written to the file that --json names.
  std::vector<std::string> remarks;  ///< Printed on stderr, after the text.
  int code = kExitDone;              ///< Exit code, equal on all ranks.
};

/// Run a command with a report. Opens the JSON file first, so that a path that cannot be written
/// fails early; then works and prints the output. Collective.
/// @param work  collective; returns the same Status on every rank.  @returns the exit code.
int run_and_show(const Session& session, const std::string& json_path, bool quiet,
                 const std::function<Result<Shown>()>& work);

/// Run work on rank 0 only, while the others wait for its result. Collective.
Result<Shown> at_root(const Session& session, const std::function<Result<Shown>()>& work);
/// Run work that prints its own output on rank 0 only. Collective. @returns the exit code.
int run_at_root(const Session& session, const std::function<Status()>& work);

/// Content of a text file. Not collective. @error not_found  names `what`, or the path if empty.
Result<std::string> read_text_file(const std::string& path, const std::string& what = "");
/// Check that charts can be drawn to this path. @error invalid_argument  neither .png nor .svg.
Status check_plot_path(const std::string& path);
/// Start of every JSON document.
nlohmann::ordered_json document_of(std::string_view command);

}  // namespace tailrace::cli
