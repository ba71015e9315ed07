// tailrace recover: what a killed job left behind, in sentences, and repaired with --apply.
//
// Rank 0 alone works; the others wait for its verdict.

#include <fmt/format.h>

#include <cstdint>
#include <nlohmann/json.hpp>

#include "commands.hpp"
#include "hdf5/recover.hpp"
#include "summary.hpp"

namespace tailrace::cli {
namespace {

const char* state_name(FileState state) {
  switch (state) {
    case FileState::whole: return "whole";
    case FileState::repairable: return "repairable";
    case FileState::absent: return "absent";
    case FileState::damaged: return "damaged";
  }
  return "";
}

std::string verdict(const std::string& path, const RecoverReport& report) {
  switch (report.state) {
    case FileState::whole: return path + " is whole";
    case FileState::repairable:
      return path + (report.applied ? " is repaired" : " can be repaired");
    case FileState::absent: return path + " does not exist: its job died before the first commit";
    case FileState::damaged: return path + " has lost data";
  }
  return "";
}

std::string report_text(const std::string& path, const RecoverReport& report) {
  std::string out = verdict(path, report) + "\n";
  for (const std::string& finding : report.findings) out += "  " + wrapped(finding, 4, 2) + "\n";
  if (report.actions.empty()) return out;
  out += report.applied ? "done:\n" : "would be done (--apply):\n";
  for (const std::string& action : report.actions) out += "  " + wrapped(action, 4, 2) + "\n";
  return out;
}

Status recover(const RecoverArguments& arguments, bool& good) {
  ReportFile json;
  TAILRACE_TRY(json.open(arguments.json_path, true));
  Result<RecoverReport> report = inspect_and_recover(arguments.file, arguments.apply);
  if (!report.ok()) return report.status();
  // Debris beside a whole file is no fault of the file.
  good = report->state == FileState::whole ||
         (report->state == FileState::repairable && report->applied);
  if (!json.to_stdout()) fmt::print("{}", report_text(arguments.file, *report));
  if (!json.wanted()) return Status();
  const nlohmann::ordered_json document = {{"schema_version", json_schema_version},
                                           {"command", "recover"},
                                           {"file", arguments.file},
                                           {"state", state_name(report->state)},
                                           {"applied", report->applied},
                                           {"findings", report->findings},
                                           {"actions", report->actions}};
  return json.finish(json_text(document));
}

}  // namespace

int run_recover(Session& session, const RecoverArguments& arguments) {
  bool good = true;
  const Status status = session.settle(session.speaks() ? recover(arguments, good) : Status());
  if (!status.ok()) return session.fail(status);
  std::uint64_t n_bad = good ? 0 : 1;
  session.comm.allreduce(std::span<std::uint64_t>(&n_bad, 1), Reduction::max);
  return n_bad == 0 ? exit_done : exit_check_failed;
}

}  // namespace tailrace::cli
