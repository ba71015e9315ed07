// recover: reports the remains of a killed job, and repairs them on request. hdf5/recover.cpp does
// the work.

#pragma once

#include <unistd.h>

#include <string>
#include <utility>

#include "hdf5/recover.hpp"
#include "hdf5/writer_lock.hpp"
#include "verbs/report_fields.hpp"

namespace tailrace::verbs {

struct RecoverRequest {
  std::string file;
  bool apply = false;  ///< Change the file; false: only report.
};

struct RecoverOutcome {
  std::string file;
  RecoverReport report;

  /// Debris next to a complete file is not a fault of the file.
  bool whole_now() const {
    return report.state == FileState::whole ||
           (report.state == FileState::repairable && report.applied);
  }
};

/// Inspect a file. Not collective: called by one rank, which becomes the file's only writer if it
/// changes the file.
/// @error as inspect_and_recover.  @error io_error  a job is writing the file (only with apply).
inline Result<RecoverOutcome> recover_file(const RecoverRequest& request) {
  TAILRACE_TAKE(const std::string path, resolve_links(request.file));
  const bool lock_file_there = ::access(lock_path_of(path).c_str(), F_OK) == 0;
  const std::string writer = writer_of(path);
  // Held until the end: a job that starts meanwhile must not find a half-repaired file.
  WriterLock lock;
  if (request.apply) TAILRACE_TRY(lock.take(path));
  TAILRACE_TAKE(RecoverReport report, inspect_and_recover(path, request.apply));
  if (!writer.empty()) {
    report.findings.push_back("It is being written by " + writer + ".");
  } else if (lock_file_there) {
    report.findings.push_back("A job that died left its lock file, \"" + lock_path_of(path) +
                              "\".");
    report.actions.emplace_back("Remove the lock file.");
    report.applied = request.apply;
  }
  // State of a file that a job writes or has left behind. A closed file has no such debris.
  const bool closed = writer.empty() && report.actions.empty();
  const bool readable = report.state == FileState::whole || report.applied;
  const std::string text = !closed && readable ? last_entries_text(path) : "";
  if (!text.empty()) report.findings.push_back(text);
  return RecoverOutcome{request.file, std::move(report)};
}

inline const char* file_state_name(FileState state) {
  switch (state) {
    case FileState::whole: return "whole";
    case FileState::repairable: return "repairable";
    case FileState::absent: return "absent";
    case FileState::damaged: return "damaged";
  }
  return "";
}

template <class Visit>
void report_fields(const RecoverOutcome& outcome, Visit&& visit) {
  document_head("recover", visit);
  visit("file", outcome.file);
  visit("state", file_state_name(outcome.report.state));
  visit("applied", outcome.report.applied);
  visit("findings", outcome.report.findings);
  visit("actions", outcome.report.actions);
}

}  // namespace tailrace::verbs
