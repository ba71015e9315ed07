// tailrace recover: what a killed job left behind, in sentences, and repaired with --apply.

#include "commands.hpp"

namespace tailrace::cli {
namespace {

std::string verdict(const verbs::RecoverOutcome& outcome) {
  const std::string& path = outcome.file;
  switch (outcome.report.state) {
    case FileState::whole: return path + " is whole";
    case FileState::repairable:
      return path + (outcome.report.applied ? " is repaired" : " can be repaired");
    case FileState::absent: return path + " does not exist: its job died before the first commit";
    case FileState::damaged: return path + " has lost data";
  }
  return "";
}

std::string report_text(const verbs::RecoverOutcome& outcome) {
  const RecoverReport& report = outcome.report;
  std::string out = verdict(outcome) + "\n";
  for (const std::string& finding : report.findings) out += "  " + wrapped(finding, 4, 2) + "\n";
  if (report.actions.empty()) return out;
  out += report.applied ? "done:\n" : "would be done (--apply):\n";
  for (const std::string& action : report.actions) out += "  " + wrapped(action, 4, 2) + "\n";
  return out;
}

}  // namespace

int run_recover(Session& session, const RecoverArguments& arguments) {
  const auto look = [&]() -> Result<Shown> {
    const Result<verbs::RecoverOutcome> outcome = verbs::recover_file(arguments.request);
    if (!outcome.ok()) return outcome.status();
    return Shown{report_text(*outcome),
                 json_text(json_of(*outcome)),
                 {},
                 outcome->whole_now() ? exit_done : exit_check_failed};
  };
  return run_and_show(session, arguments.json_path, false, [&] { return at_root(session, look); });
}

}  // namespace tailrace::cli
