// Runs over files and their fields; prints a table as soon as a field is done.

#include "codecs_main.hpp"

#include <fmt/format.h>
#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#ifdef __GLIBC__
#include <malloc.h>
#endif

#include "cli/cli_common.hpp"
#include "codecs_report.hpp"
#include "filters/own_filters.hpp"
#include "parse_arguments.hpp"
#include "trz/kernels/isa.hpp"
#include "verbs/input_fields.hpp"

namespace tailrace::bench {
namespace {

constexpr std::uint64_t kLeastBytes = 4096;

/// Keep freed memory in the heap, so that no codec pays for page faults.
void keep_heap_pages() {
#ifdef __GLIBC__
  ::mallopt(M_MMAP_MAX, 0);
  ::mallopt(M_TRIM_THRESHOLD, 1 << 30);
  ::mallopt(M_TOP_PAD, 64 << 20);
#endif
}

/// Reason for which a field is not measured; empty if it is.
std::string reason_to_leave_out(const StoredDataset& field) {
  if (n_elements(field.shape) * field.value_bytes() < kLeastBytes) return "under 4 KiB";
  return field.coordinate ? "a coordinate" : "";
}

bool wanted(const StoredDataset& field, const CodecsOptions& options) {
  if (options.fields.empty()) return true;
  return std::any_of(options.fields.begin(), options.fields.end(),
                     [&](const std::string& glob) { return glob_matches(glob, field.path); });
}

/// Measure the fields of one file.
class FileRun {
 public:
  FileRun(cli::Session& session, const std::string& path, bool table, CodecsOutcome& outcome)
      : session_(session), path_(path), table_(table), outcome_(outcome) {}

  Status run() {
    TAILRACE_TRY(hdf5::register_own_filters());
    Result<std::unique_ptr<InputFile>> input =
        verbs::open_input(path_, outcome_.options.raw_format);
    if (!input.ok()) return input.status();
    for (std::size_t f = 0; f < (*input)->fields().size(); ++f) {
      const StoredDataset& field = (*input)->fields()[f];
      if (!wanted(field, outcome_.options)) continue;
      const std::string reason = reason_to_leave_out(field);
      if (reason.empty()) {
        TAILRACE_TRY(run_field(**input, f));
      } else if (!outcome_.options.fields.empty()) {
        leave_out(field.path, reason);
      }
    }
    return Status();
  }

 private:
  void leave_out(const std::string& field_path, const std::string& reason) {
    session_.remark(fmt::format("left out {} {}: {}", path_, field_path, reason));
  }

  Status run_field(InputFile& input, std::size_t index) {
    const std::string file_name = std::filesystem::path(path_).filename().string();
    Result<CodecsField> field = scan_field(input, index, file_name, outcome_.options);
    if (!field.ok()) return field.status();
    if (field->range.constant()) {
      leave_out(field->path, "all values are equal");
      return Status();
    }
    cli::ProgressBar bar(field->path, session_.speaks());
    std::uint64_t n_done = 0;
    Result<std::vector<CodecsRow>> rows =
        measure_field(input, index, *field, outcome_.options, [&](std::uint64_t n_bytes) {
          n_done += n_bytes;
          bar.update(n_done, std::max(field->raw_bytes, n_done));
        });
    if (!rows.ok()) return rows.status();
    for (CodecsRow& row : *rows) {
      row.field = outcome_.fields.size();
      outcome_.rows.push_back(std::move(row));
    }
    outcome_.fields.push_back(std::move(*field));
    bar.clear();
    if (table_) {
      fmt::print("{}\n", codecs_field_text(outcome_));
      std::fflush(stdout);
    }
    return Status();
  }

  cli::Session& session_;
  std::string path_;
  bool table_;
  CodecsOutcome& outcome_;
};

Status compare_codecs(cli::Session& session, bool table, CodecsOutcome& outcome) {
  Result<std::vector<std::string>> remarks = drop_missing_codecs(outcome.options);
  if (!remarks.ok()) return remarks.status();
  for (const std::string& remark : *remarks) session.remark(remark);
  outcome.machine = find_machine_facts("/");
  outcome.instruction_set = trz::isa_name(trz::best_isa());
  for (const std::string& path : outcome.options.inputs) {
    TAILRACE_TRY(FileRun(session, path, table, outcome).run());
  }
  if (outcome.fields.empty()) {
    return Status(Code::invalid_argument, "the inputs have no field to measure");
  }
  if (table) fmt::print("{}", codecs_summary_text(outcome));
  return Status();
}

/// Complete run on one rank.
Status run_alone(cli::Session& session, const CodecsArguments& arguments, bool& kept_promises) {
  Result<CodecsOptions> options = understand(arguments);
  if (!options.ok()) return options.status();
  cli::ReportFile csv;
  cli::ReportFile json;
  TAILRACE_TRY(csv.open(arguments.csv_path, true));
  TAILRACE_TRY(json.open(arguments.json_path, true));
  keep_heap_pages();
  // Plug-ins may start threads, whose time the thread's clock does not count.
  ::setenv("OMP_NUM_THREADS", "1", 1);
  CodecsOutcome outcome;
  outcome.options = std::move(*options);
  TAILRACE_TRY(compare_codecs(session, !json.to_stdout() && !csv.to_stdout(), outcome));
  for (const CodecsRow& row : outcome.rows) {
    if (row.ours && row.n_bad() > 0) kept_promises = false;
  }
  if (csv.wanted()) TAILRACE_TRY(csv.finish(codecs_csv(outcome)));
  if (json.wanted()) TAILRACE_TRY(json.finish(cli::json_text(codecs_json(outcome))));
  return Status();
}

}  // namespace

int run_codecs(cli::Session& session, int argc, char** argv) {
  CodecsArguments arguments;
  const std::unique_ptr<CLI::App> app = make_codecs_parser(arguments);
  if (const auto ended = parse_arguments(*app, session, argc, argv, "tailrace-lab bench codecs"))
    return *ended;
  bool kept_promises = true;
  const Status status =
      session.agree(session.speaks() ? run_alone(session, arguments, kept_promises) : Status());
  if (!status.ok()) return session.fail(status);
  const Status verdict =
      session.agree(kept_promises ? Status()
                                  : Status(Code::bound_broken,
                                           "a codec of Tailrace broke its bound; see the table"));
  return verdict.ok() ? cli::kExitDone : session.fail(verdict);
}

}  // namespace tailrace::bench
