// recover: what a killed job left behind, and repaired where that is asked for. The work is
// container/recover.cpp.

#pragma once

#include <string>
#include <utility>

#include "hdf5/recover.hpp"
#include "verbs/report_fields.hpp"

namespace tailrace::verbs {

struct RecoverRequest {
  std::string file;
  bool apply = false;  ///< Change the file; else only report.
};

struct RecoverOutcome {
  std::string file;
  RecoverReport report;

  /// Debris beside a whole file is no fault of the file.
  bool whole_now() const {
    return report.state == FileState::whole ||
           (report.state == FileState::repairable && report.applied);
  }
};

/// Not collective: one rank does it. @error as inspect_and_recover.
inline Result<RecoverOutcome> recover_file(const RecoverRequest& request) {
  Result<RecoverReport> report = inspect_and_recover(request.file, request.apply);
  if (!report.ok()) return report.status();
  return RecoverOutcome{request.file, std::move(*report)};
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
