// tailrace repack: existing files in, compressed HDF5 files out.

#include <fmt/format.h>

#include <filesystem>

#include "commands.hpp"
#include "core/option_table.hpp"
#include "exec/trace_file.hpp"
#include "progress_bar.hpp"
#include "summary.hpp"

namespace tailrace::cli {
namespace {

/// What all files have in common.
Result<verbs::RepackRequest> request_of(const RepackArguments& arguments) {
  verbs::RepackRequest request = arguments.request;
  FileOptions& options = request.options;
  for (const KeyValue& entry : arguments.file_options) {
    request.chunk_given = request.chunk_given || entry.first == "chunk";
    TAILRACE_TRY(apply_file_option(entry, options).within("--" + entry.first));
  }
  if (!arguments.why.empty()) {
    TAILRACE_TRY(apply_file_option({"why", arguments.why}, options).within("--why"));
  }
  options.trace = !arguments.trace_path.empty();
  if (options.trace && arguments.inputs.size() > 1) {
    return Status(Code::invalid_argument, "--trace takes one input at a time");
  }
  return request;
}

/// Repack one file.
Result<verbs::RepackReport> repack_visibly(const Session& session, bool quiet,
                                           const verbs::RepackRequest& request) {
  ProgressBar bar(std::filesystem::path(request.input).filename().string(),
                  session.speaks() && !quiet);
  return verbs::repack(session.for_verb(quiet, bar), request);
}

/// Print and save what one file came to. Rank 0.
Status report_file(const Session& session, const verbs::RepackReport& report, bool table,
                   bool quiet, ReportFile& trace) {
  if (!session.speaks()) return Status();
  if (table) fmt::print("{}", summary_text(report));
  if (table && report.options.why != Why::off) fmt::print("\n{}", why_text(report));
  for (const std::string& remark : report.remarks) {
    if (!quiet) session.remark(remark);
  }
  if (!trace.wanted()) return Status();
  return trace.finish(trace_json(report.events, report.field_paths));
}

}  // namespace

int run_repack(Session& session, const RepackArguments& arguments) {
  Result<verbs::RepackRequest> request = request_of(arguments);
  if (!request.ok()) return session.fail(request.status());
  const Result<std::vector<std::string>> outputs =
      verbs::repack_outputs(arguments.inputs, arguments.output, request->netcdf.wanted);
  Status status = session.settle(outputs.status());
  if (!status.ok()) return session.fail(status);
  const bool table = !arguments.quiet && arguments.json_path != "-";
  return run_and_show(session, arguments.json_path, arguments.quiet, [&]() -> Result<Shown> {
    ReportFile trace;
    TAILRACE_TRY(session.settle(trace.open(arguments.trace_path, session.speaks())));
    TAILRACE_TRY(start_hdf5(session, request->options.plugin_path));
    nlohmann::ordered_json document = {{"schema_version", json_schema_version},
                                       {"command", "repack"}};
    document["files"] = nlohmann::ordered_json::array();
    for (std::size_t i = 0; i < arguments.inputs.size(); ++i) {
      request->input = arguments.inputs[i];
      request->output = (*outputs)[i];
      const auto report = repack_visibly(session, arguments.quiet, *request);
      if (!report.ok()) return report.status();
      TAILRACE_TRY(session.settle(report_file(session, *report, table, arguments.quiet, trace)));
      if (session.speaks()) document["files"].push_back(json_of(*report));
    }
    return Shown{"", json_text(document), {}, exit_done};
  });
}

}  // namespace tailrace::cli
