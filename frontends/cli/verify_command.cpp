// tailrace verify: is every value of the compressed file as near to the original as was promised?
// And with --concat: did every element of every input arrive in the output, and nothing else?

#include <fmt/format.h>

#include "commands.hpp"
#include "progress_bar.hpp"
#include "report/verify_text.hpp"

namespace tailrace::cli {
namespace {

std::string verdict_text(const verbs::VerifyConcatReport& report) {
  TextTable table({{"inputs", true},
                   {"datasets", true},
                   {"empty", true},
                   {"keys", true},
                   {"rows", true},
                   {"bytes", true},
                   {"ranks", true},
                   {"time", true},
                   {"verdict"}});
  table.add_row({fmt::format("{}", report.inputs.size()), fmt::format("{}", report.n_datasets),
                 fmt::format("{}", report.n_empty),
                 report.keys.empty() ? "" : fmt::format("{}", report.keys.size()),
                 fmt::format("{}", report.n_rows), size_text(report.raw_bytes),
                 fmt::format("{}", report.n_ranks), seconds_text(report.total_s),
                 report.ok() ? "ok" : "FAILED"});
  std::string text = table.text();
  for (const std::string& line : report.findings.lines) text += line + "\n";
  const std::uint64_t n_more = report.findings.n_all - report.findings.lines.size();
  if (n_more > 0) text += fmt::format("and {} more\n", n_more);
  for (const std::string& key : report.keys) text += fmt::format("key {}\n", key);
  return text + (report.ok() ? fmt::format("{} is the concatenation of {}\n", report.output,
                                           counted(report.inputs.size(), "input"))
                             : fmt::format("{} differs from the concatenation of {}: {}\n",
                                           report.output, counted(report.inputs.size(), "input"),
                                           counted(report.findings.n_all, "difference")));
}

/// The inputs of a concatenation may stand where the two files stand.
verbs::VerifyConcatRequest concat_request_of(const VerifyArguments& arguments) {
  verbs::VerifyConcatRequest request = arguments.concat;
  for (const std::string& file : {arguments.files.original, arguments.files.compressed}) {
    if (!file.empty()) request.files.push_back(file);
  }
  request.files.insert(request.files.end(), arguments.more_files.begin(),
                       arguments.more_files.end());
  return request;
}

}  // namespace

int run_verify(Session& session, const VerifyArguments& arguments) {
  ProgressBar bar("verify", session.speaks() && !arguments.quiet);
  const verbs::VerbRanks ranks = session.for_verb(arguments.quiet, bar);
  return run_and_show(session, arguments.json_path, arguments.quiet, [&]() -> Result<Shown> {
    TAILRACE_TRY(start_hdf5(session, arguments.plugin_path));
    if (!arguments.concat.output.empty()) {
      const auto report = verbs::verify_concat(ranks, concat_request_of(arguments));
      bar.clear();
      if (!report.ok()) return report.status();
      return Shown{verdict_text(*report),
                   json_text(json_of(*report)),
                   {},
                   report->ok() ? exit_done : exit_check_failed};
    }
    const Result<verbs::VerifyReport> report = verbs::verify_files(ranks, arguments.files);
    bar.clear();
    if (!report.ok()) return report.status();
    return Shown{verify_text(*report),
                 json_text(json_of(*report)),
                 {},
                 report->n_failed() == 0 ? exit_done : exit_check_failed};
  });
}

}  // namespace tailrace::cli
