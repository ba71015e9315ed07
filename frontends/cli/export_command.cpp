// tailrace export: datasets without compression.

#include <fmt/format.h>

#include <filesystem>

#include "commands.hpp"
#include "progress_bar.hpp"
#include "summary.hpp"

namespace tailrace::cli {

int run_export(Session& session, const ExportArguments& arguments) {
  const bool quiet = arguments.quiet;
  ProgressBar bar(std::filesystem::path(arguments.request.input).filename().string(),
                  session.speaks() && !quiet);
  const verbs::VerbRanks ranks = session.for_verb(quiet, bar);
  verbs::ExportRequest request = arguments.request;
  request.written = [&](const verbs::ExportedFile& file) {
    if (quiet) return;
    fmt::print("{}  {}  {}  {}\n", file.path, dtype_name(file.dtype), shape_text(file.shape),
               size_text(file.raw_bytes));
  };
  return run_and_show(session, "", quiet, [&]() -> Result<Shown> {
    TAILRACE_TRY(start_hdf5(session, request.plugin_path));
    const Result<verbs::ExportReport> report = verbs::export_files(ranks, request);
    bar.clear();
    if (!report.ok()) return report.status();
    if (!report->repacked) return Shown();
    return Shown{summary_text(*report->repacked), "",
                 quiet ? std::vector<std::string>() : report->repacked->remarks, exit_done};
  });
}

}  // namespace tailrace::cli
