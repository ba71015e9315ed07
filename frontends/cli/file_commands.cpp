// The commands that look at files, and take no decisions: info, recover, export.

#include <fmt/format.h>

#include <filesystem>

#include "commands.hpp"
#include "filters/own_filters.hpp"
#include "report/info_text.hpp"
#include "verbs/export_files.hpp"
#include "verbs/file_info.hpp"
#include "verbs/recover_file.hpp"

namespace tailrace::cli {
namespace {

constexpr const char* kInfoDescription =
    R"(Show the contents of a file: fields, chunks, filters, bounds, ratios

Examples:
  tailrace info small.h5
  tailrace info small.h5 --chunks /native_fields/temperature
)";

constexpr const char* kRecoverDescription =
    R"(Inspect the output of a killed job, and repair it

Examples:
  tailrace recover small.h5            report only, change nothing
  tailrace recover small.h5 --apply    repair: back to the last committed step
)";

constexpr const char* kExportDescription =
    R"help(Write datasets without compression: as HDF5, as .npy, or as raw values

Examples:
  tailrace export small.h5 -o plain.h5
      everything, with groups, attributes and links, without filters
  mpiexec -n 4 tailrace export small.h5 -o density.npy --only /fields/density
      one dataset as a NumPy file
  tailrace export small.h5 -o folder --format npy
      each dataset as a .npy file in a folder, named by its path
  tailrace export small.h5 -o u.bin --format raw --only /u --slab 0:100,0:64:2
      a part of one dataset: start:end or start:end:step per dimension
  tailrace export small.nc -o part.nc --slab 0:1,100:200,100:200
      a part of all datasets of three dimensions, with their coordinates
  tailrace export small.nc -o overview.nc --level 2
      every fourth value along each axis of the grid, with the coordinates
  tailrace export small.h5 -o density.npy --only /density --abs 1e-2
      values within a coarser bound, which reads fewer bytes of fields with bit planes
)help";

constexpr const char* kExportFooter =
    R"help(Numbers are written in this machine's byte order. All ranks write .npy and raw files in
parallel, each its own rows. See docs/read.md.

Exit codes: 0 done, 2 usage or bad input, 3 storage failed or memory was exceeded.)help";

/// Describe the state in which a killed job left a file.
std::string recover_verdict(const verbs::RecoverOutcome& outcome) {
  const std::string& path = outcome.file;
  switch (outcome.report.state) {
    case FileState::whole: return path + " is complete and undamaged";
    case FileState::repairable:
      return path + (outcome.report.applied ? " is repaired" : " can be repaired");
    case FileState::absent: return path + " does not exist: its job died before the first commit";
    case FileState::damaged: return path + " has lost data";
  }
  return "";
}

std::string recover_text(const verbs::RecoverOutcome& outcome) {
  const RecoverReport& report = outcome.report;
  std::string out = wrapped(recover_verdict(outcome), 2) + "\n";
  for (const std::string& finding : report.findings) out += "  " + wrapped(finding, 4, 2) + "\n";
  if (report.actions.empty()) return out;
  out += report.applied ? "done:\n" : "would be done (--apply):\n";
  for (const std::string& action : report.actions) out += "  " + wrapped(action, 4, 2) + "\n";
  return out;
}

int run_export(Session& session, verbs::ExportRequest request, bool quiet) {
  ProgressBar bar(std::filesystem::path(request.input).filename().string(),
                  session.speaks() && !quiet);
  const verbs::VerbRanks ranks = session.for_verb(quiet, bar);
  request.written = [&](const verbs::ExportedFile& file) {
    if (quiet) return;
    print_text(fmt::format("{}  {}  {}  {}\n", printable(file.path), dtype_name(file.dtype),
                           shape_text(file.shape), size_text(file.raw_bytes)));
  };
  return run_and_show(session, "", quiet, [&]() -> Result<Shown> {
    TAILRACE_TRY(start_hdf5(session, request.plugin_path));
    const Result<verbs::ExportReport> report = verbs::export_files(ranks, request);
    bar.clear();
    if (!report.ok()) return report.status();
    if (!report->repacked) return Shown();
    return Shown{summary_text(*report->repacked), "",
                 quiet ? std::vector<std::string>() : report->repacked->remarks, kExitDone};
  });
}

}  // namespace

Command add_info(CLI::App& app) {
  struct Arguments {
    verbs::InfoRequest request;
    std::string json_path;
  };
  const auto info = std::make_shared<Arguments>();
  CLI::App* sub = app.add_subcommand("info", kInfoDescription);
  sub->add_option("FILE", info->request.file, "HDF5, netCDF, .npy, or raw binary.")->required();
  Group(sub, "What to show")(
      "--chunks", info->request.chunks_of, "FIELD",
      "List every chunk of this field: position, address, bytes, filter mask.");
  const Group input(sub, "Input");
  input.raw(info->request.raw_format, "The file");
  input.follow_external(info->request.follow_external);
  report_options(sub, info->json_path);
  const auto look = [info]() -> Result<Shown> {
    TAILRACE_TRY(hdf5::register_own_filters());
    TAILRACE_TAKE(const verbs::InfoReport report, verbs::file_info(info->request));
    std::vector<std::string> remarks = report.remarks;
    for (const std::string& object : report.unreadable) remarks.push_back(unreadable_text(object));
    return Shown{info_text(report), json_text(json_of(report)), std::move(remarks),
                 report.unreadable.empty() ? kExitDone : kExitResources};
  };
  return [info, look](Session& session) {
    return run_and_show(session, info->json_path, false, [&] { return at_root(session, look); });
  };
}

Command add_recover(CLI::App& app) {
  struct Arguments {
    verbs::RecoverRequest request;
    std::string json_path;
  };
  const auto recover = std::make_shared<Arguments>();
  CLI::App* sub = app.add_subcommand("recover", kRecoverDescription);
  sub->add_option("FILE", recover->request.file, "The output of a job that died.")->required();
  Group(sub, "What to do")
      .flag("--apply", recover->request.apply, "Repair the file. Default: only report.");
  report_options(sub, recover->json_path);
  const auto look = [recover]() -> Result<Shown> {
    TAILRACE_TAKE(const verbs::RecoverOutcome outcome, verbs::recover_file(recover->request));
    return Shown{recover_text(outcome),
                 json_text(json_of(outcome)),
                 {},
                 outcome.whole_now() ? kExitDone : kExitCheckFailed};
  };
  return [recover, look](Session& session) {
    return run_and_show(session, recover->json_path, false, [&] { return at_root(session, look); });
  };
}

Command add_export(CLI::App& app) {
  struct Arguments {
    verbs::ExportRequest request;
    bool quiet = false;
  };
  const auto arguments = std::make_shared<Arguments>();
  verbs::ExportRequest& request = arguments->request;
  CLI::App* sub = app.add_subcommand("export", kExportDescription);
  sub->footer(kExportFooter);
  sub->add_option("INPUT", request.input, "An HDF5 or netCDF-4 file.")->required();
  const Group output(sub, "Output");
  const Group input(sub, "Input");
  const Group resources(sub, "Resources");
  output("-o,--output", request.output, "OUT",
         "The file to create, or a folder for several .npy or raw files.")
      ->required();
  output("--format", request.format, "hdf5|npy|raw",
         "Default: by the name of OUT (.npy, .bin, .raw), else hdf5.");
  output.flag("--force", request.replace, "Replace existing files.");
  input.globs(request.selection, "Export", "datasets");
  input.follow_external(request.follow_external);
  input("--slab", request.slab, "START:END[:STEP],...",
        "Export a part of each dataset, with one range per dimension; an empty START or END means "
        "the first or last element. HDF5 output is a netCDF-4 file with coordinates. Default: all "
        "values.");
  input("--level", request.level, "K",
        "Export every 2^K-th value along the last (at most three) dimensions in which chunks have "
        "more than one element. Fields with coarse views (codec trz,coarse=K) are read in part "
        "only. Default 0, all.");
  input("--abs", request.abs_bound, "E",
        "Export values within E of the originals, or within the bound of the field if that is "
        "coarser. Fields with bit planes (codec trz,refine=K) are read in part only. Default: full "
        "accuracy.");
  resources("--read-options", request.read_options, "KEY=VALUE,...",
            "threads=N, memory=SIZE, read=SIZE, gap=SIZE, abs=E, prefetch=on|off.");
  resources("--plugin-path", request.plugin_path, "FOLDERS", kPluginPathHelp);
  Group(sub, "Reports").flag("-q,--quiet", arguments->quiet, "Print errors only.");
  return [arguments](Session& session) {
    return run_export(session, arguments->request, arguments->quiet);
  };
}

}  // namespace tailrace::cli
