// tailrace verify: is every value of the compressed file as near to the original as was promised?
// And with --concat: did every element of every input arrive in the output, and nothing else?

#include <fmt/format.h>

#include "commands.hpp"
#include "report/verify_page.hpp"
#include "report/verify_text.hpp"
#include "verbs/verify_concat.hpp"
#include "verbs/verify_files.hpp"

namespace tailrace::cli {
namespace {

struct VerifyArguments {
  verbs::VerifyRequest files;
  verbs::VerifyConcatRequest concat;    ///< Without an output: two files to compare.
  std::vector<std::string> more_files;  ///< Its inputs, after original and compressed.
  std::string plugin_path;
  std::string json_path;
  std::string report_path;
  bool quiet = false;
};

constexpr const char* kVerifyDescription =
    R"(Check that a compressed file keeps its error bounds

Examples:
  tailrace verify snapshot.h5 small.h5
      every field against the bound that small.h5 records; fields without one must be equal
  mpiexec -n 4 tailrace verify snapshot.nc other.h5 --bound rel=1e-3
      a file of another tool, against the bound given here
  tailrace verify a.h5 b.h5 --ignore-attribute history --ignore '/scratch*'
      without an attribute and some objects that are known to differ
  tailrace verify a.h5 b.h5 --bound psnr=80 --field 'density:bound=abs=1e-6'
  mpiexec -n 4 tailrace verify run.nc small.nc --report small.html
      a report on the errors: bias, correlation, distribution, maps, spectra
  mpiexec -n 4 tailrace verify --concat all.h5 -i list.txt
      check that all.h5 is the concatenation of the listed files, element for element

The comparison uses exact arithmetic, and the ranks share the work. For values beyond the bound, it
prints the coordinates, the original and the decoded value. For two HDF5 files it also compares
everything else: user block, objects, links, types, fill values, orders, attributes.
)";

constexpr const char* kVerifyFooter =
    R"(DOUBTFUL marks a field that keeps its bound, but the bound is too wide to be useful: an
undeclared fill value widens the range that the bound is relative to, or more than a quarter of the
values are smaller than the bound, or an absolute bound is at least half of the range of the values.

Exit codes: 0 all fields keep their bounds (also DOUBTFUL ones) and everything else is equal; 1 a
bound is broken, or something is missing, new or different; 2 usage or bad input; 3 storage failed
or memory was exceeded. The storage of chunks may differ: such differences are only listed.)";

std::string verdict_text(const verbs::VerifyConcatReport& report) {
  TextTable table(">inputs|>datasets|>empty|>keys|>rows|>bytes|>ranks?1|>time|verdict");
  table.add_row({fmt::format("{}", report.inputs.size()), fmt::format("{}", report.n_datasets),
                 fmt::format("{}", report.n_empty),
                 report.keys.empty() ? "" : fmt::format("{}", report.keys.size()),
                 fmt::format("{}", report.n_rows), size_text(report.raw_bytes),
                 fmt::format("{}", report.n_ranks), seconds_text(report.total_s),
                 report.ok() ? "ok" : "FAILED"});
  std::string text = table.text();
  for (const std::string& line : report.findings.lines) text += wrapped(line, 2) + "\n";
  const std::uint64_t n_more = report.findings.n_all - report.findings.lines.size();
  if (n_more > 0) text += fmt::format("and {} more\n", n_more);
  for (const std::string& key : report.keys) text += fmt::format("key {}\n", printable(key));
  const std::string inputs = counted(report.inputs.size(), "input");
  const std::string verdict =
      report.ok() ? fmt::format("{} is the concatenation of {}", report.output, inputs)
                  : fmt::format("{} differs from the concatenation of {}: {}", report.output,
                                inputs, counted(report.findings.n_all, "difference"));
  return text + wrapped(verdict, 2) + "\n";
}

/// The inputs of a concatenation may stand where the two files stand.
verbs::VerifyConcatRequest concat_request_of(const VerifyArguments& arguments) {
  verbs::VerifyConcatRequest request = arguments.concat;
  request.follow_external = arguments.files.follow_external;
  for (const std::string& file : {arguments.files.original, arguments.files.compressed}) {
    if (!file.empty()) request.files.push_back(file);
  }
  request.files.insert(request.files.end(), arguments.more_files.begin(),
                       arguments.more_files.end());
  return request;
}

bool is_page(const std::string& path) { return path.ends_with(".html"); }

/// Text of the file of --report; empty without --report.
std::string report_document(const std::string& path, const verbs::VerifyReport& report) {
  if (path.empty()) return "";
  return is_page(path) ? verify_page(report) : json_text(json_of(report));
}

int run_verify(Session& session, const VerifyArguments& arguments) {
  ProgressBar bar("verify", session.speaks() && !arguments.quiet);
  const verbs::VerbRanks ranks = session.for_verb(arguments.quiet, bar);
  return run_and_show(session, arguments.json_path, arguments.quiet, [&]() -> Result<Shown> {
    TAILRACE_TRY(start_hdf5(session, arguments.plugin_path));
    if (!arguments.concat.output.empty()) {
      const auto report = verbs::verify_concat(ranks, concat_request_of(arguments));
      bar.clear();
      if (!report.ok()) return report.status();
      return Shown{verdict_text(*report), json_text(json_of(*report)), report->remarks,
                   report->ok() ? kExitDone : kExitCheckFailed};
    }
    Status written;
    ReportFile page;
    TAILRACE_TRY(session.agree(page.open(arguments.report_path, session.speaks())));
    const Result<verbs::VerifyReport> report = verbs::verify_files(ranks, arguments.files);
    bar.clear();
    if (!report.ok()) return report.status();
    if (session.speaks()) written = page.finish(report_document(arguments.report_path, *report));
    TAILRACE_TRY(session.agree(written));
    // Not even a quiet run lets a promise that says little pass for success.
    const bool doubtful = report->n_doubtful() > 0 && arguments.quiet;
    return Shown{verify_text(*report), json_text(json_of(*report)),
                 doubtful ? report->doubts : std::vector<std::string>(),
                 report->n_failed() == 0 ? kExitDone : kExitCheckFailed};
  });
}

/// The two ways to verify take different options.
void check_verify(const VerifyArguments& verify) {
  const bool pair_options =
      !verify.files.bound.empty() || !verify.files.per_field.empty() ||
      !verify.files.selection.only.empty() || !verify.files.selection.exclude.empty() ||
      !verify.files.ignore.empty() || !verify.files.ignore_attributes.empty() ||
      verify.files.values_only || !verify.files.raw_format.empty();
  const bool concat_options = !verify.concat.list_path.empty() ||
                              !verify.concat.key_names.empty() ||
                              verify.concat.on_different != "error" || !verify.concat.tile.empty();
  const bool with_report = !verify.report_path.empty();
  if (!verify.concat.output.empty()) {
    if (!pair_options && !with_report) return;
    throw CLI::ValidationError(
        "--concat",
        "cannot be combined with --bound, --field, --only, --exclude, --ignore, "
        "--ignore-attribute, --values-only, --raw or --report");
  }
  if (verify.files.original.empty()) throw CLI::RequiredError("ORIGINAL");
  if (verify.files.compressed.empty()) throw CLI::RequiredError("COMPRESSED");
  if (!verify.more_files.empty()) throw CLI::ExtrasError(verify.more_files);
  if (concat_options)
    throw CLI::ValidationError("--list, --key, --tile, --on-different", "need --concat");
  if (with_report && !is_page(verify.report_path) && !verify.report_path.ends_with(".json")) {
    throw CLI::ValidationError("--report", "expected a name that ends with .html or .json");
  }
  if (!verify.concat.memory.empty() && !with_report) {
    throw CLI::ValidationError("--memory", "needs --concat or --report");
  }
}

}  // namespace

Command add_verify(CLI::App& app) {
  const auto arguments = std::make_shared<VerifyArguments>();
  VerifyArguments& verify = *arguments;
  CLI::App* sub = app.add_subcommand("verify", kVerifyDescription);
  const Group input(sub, "Input");
  sub->footer(kVerifyFooter);
  sub->add_option("ORIGINAL", verify.files.original, "The file before compression.");
  sub->add_option("COMPRESSED", verify.files.compressed, "The file after compression.");
  sub->add_option("FILES", verify.more_files,
                  "With --concat: the inputs, which include the first two arguments.");
  sub->final_callback([&verify] { check_verify(verify); });
  const Group concat(sub, "Check a concatenation");
  concat("--concat", verify.concat.output, "OUT",
         "Check that OUT holds every element of the inputs, in order, and nothing else.");
  concat("-i,--list", verify.concat.list_path, "LIST",
         "File with the names of the inputs, one per line; '-' is standard input.");
  concat("-k,--key", verify.concat.key_names, "NAMES",
         "Columns that identify an event, as given to concat; checks the key datasets.");
  concat("--tile", verify.concat.tile, "DIMENSIONS", "As given to concat.");
  concat("--on-different", verify.concat.on_different, "error|keep-first",
         "As given to concat. keep-first: compare datasets without a record dimension only with "
         "those of the first input. Default error.");
  const Group checks(sub, "What to check");
  checks("-b,--bound", verify.files.bound, "MODE=VALUE",
         "Bound (abs=, rel=, psnr= or pw_rel=) for all floating-point fields that are not recorded "
         "as exact. Default: the bounds that the compressed file records.");
  checks.list("-f,--field", verify.files.per_field, "GLOB:k=v,...",
              "bound= (none: exact) or fill= for matching fields. Repeatable.");
  checks.globs(verify.files.selection, "Compare", "fields", " Default: all of the original.");
  checks.list("--ignore", verify.files.ignore, "GLOB",
              "Leave out objects of both files whose path matches. Repeatable. Default: none.");
  checks.list("--ignore-attribute", verify.files.ignore_attributes, "GLOB",
              "Leave out attributes whose name matches. Repeatable. Default: none.");
  checks.flag("--values-only", verify.files.values_only,
              "Compare only the values of the fields of the original. Use it for files that are "
              "not copies of each other. Default: compare everything.");
  input("--plugin-path", verify.plugin_path, "FOLDERS", kPluginPathHelp);
  input.raw(verify.files.raw_format, "The original");
  input.follow_external(verify.files.follow_external);
  report_options(sub, verify.json_path,
                 {"bound", "field", "only", "ignore", "ignore-attribute", "values-only", "concat",
                  "list", "report", "json", "help", "help-all"});
  const Group reports(sub, "Reports");
  reports("--report", verify.report_path, "FILE",
          "Also measure mean bias, correlation, distribution (KS), similarity of maps (SSIM) and "
          "spectra, and write them to FILE (.html or .json).");
  reports("--memory", verify.concat.memory, "SIZE",
          "Memory of each rank for values of --report, or for rows and open files of --concat. "
          "Default 256MiB.");
  reports.flag("-q,--quiet", verify.quiet, "No table; the exit code has the result.");
  return [arguments](Session& session) {
    arguments->files.fidelity = !arguments->report_path.empty();
    arguments->files.memory = arguments->concat.memory;
    return run_verify(session, *arguments);
  };
}

}  // namespace tailrace::cli
