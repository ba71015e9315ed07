// tailrace concat: many HDF5 files in, one out; the screen that it ends with.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string_view>

#include "commands.hpp"
#include "core/option_table.hpp"
#include "progress_bar.hpp"

namespace tailrace::cli {
namespace {

constexpr std::size_t most_path_columns = 58;

/// "3 files, first to last (12.4 MB)".
std::string inputs_text(const verbs::ConcatOutcome& outcome) {
  const std::vector<std::string>& inputs = outcome.request.inputs;
  std::string text = counted(outcome.report.n_files, "file");
  if (!outcome.report.skipped.empty()) text += fmt::format(" of {}", inputs.size());
  constexpr std::size_t columns_of_each = most_path_columns / 2 - 2;
  if (inputs.size() == 1) {
    text += ", " + shorten_middle(inputs.front(), most_path_columns);
  } else if (!inputs.empty()) {
    text += fmt::format(", {} to {}", shorten_middle(inputs.front(), columns_of_each),
                        shorten_middle(inputs.back(), columns_of_each));
  }
  return fmt::format("{} ({})", text, size_text(outcome.report.input_bytes));
}

std::string chunks_text(const ConcatReport& report) {
  if (report.n_chunks == 0) return "none";
  const std::uint64_t n_encoded = report.n_chunks - std::min(report.n_copied, report.n_chunks);
  std::string text = fmt::format("{}: {} copied as stored", report.n_chunks, report.n_copied);
  if (report.n_copied > 0) text += fmt::format(" ({})", size_text(report.copied_bytes));
  text += fmt::format(", {} encoded anew", n_encoded);
  if (report.n_shared > 0) text += fmt::format("; {} share another's bytes", report.n_shared);
  return text;
}

/// What a stage's name stands for, where it does not say it itself.
std::string_view stage_remark(std::string_view stage) {
  if (stage == "open") return "inputs opened, their schema read and compared";
  if (stage == "exchange") return "counts of rows, chunks on their way to who encodes them";
  if (stage == "read") return "stored chunks; busy time of all threads, as are the next three";
  if (stage == "create") return "datasets of the output, by rank 0";
  if (stage == "index") return "addresses of chunks, by rank 0";
  if (stage == "close") return "metadata, fsync and rename";
  return "";
}

std::string stage_table(const verbs::ConcatOutcome& outcome) {
  const ConcatReport& report = outcome.report;
  TextTable table({{"stage"}, {"mean of ranks", true}, {"slowest", true}, {""}});
  for (const auto& [stage, time] : report.stages) {
    table.add_row({stage, seconds_text(time.mean_s), seconds_text(time.max_s),
                   std::string(stage_remark(stage))});
  }
  const std::string speed = throughput_text(report.raw_bytes, report.total_s);
  table.add_row({"all", "", seconds_text(report.total_s),
                 fmt::format("{}{} x {}", speed == "-" ? "" : speed + " MB/s of values, ",
                             counted(static_cast<std::uint64_t>(outcome.n_ranks), "rank"),
                             counted(outcome.n_threads, "thread"))});
  return table.text();
}

std::string concat_text(const verbs::ConcatOutcome& outcome) {
  const ConcatReport& report = outcome.report;
  const std::uint64_t encoded_bytes =
      report.output_bytes - std::min(report.metadata_bytes, report.output_bytes);
  std::string out = fmt::format("from  {}\n", inputs_text(outcome));
  out += fmt::format("to    {} ({}, metadata {} of it)\n",
                     shorten_middle(outcome.request.output, most_path_columns),
                     size_text(report.output_bytes), size_text(report.metadata_bytes));
  out += fmt::format("{} of values in {}, {} of them empty; {}, ratio {}\n\n",
                     size_text(report.raw_bytes), counted(report.n_datasets, "dataset"),
                     report.n_empty, counted(report.n_rows, "row"),
                     ratio_text(report.raw_bytes, encoded_bytes));
  out += fmt::format("chunks  {}\n", chunks_text(report));
  out += fmt::format("memory  {} of {} a rank, {}, {}\n\n", size_text(report.peak_bytes),
                     size_text(outcome.request.options.memory_bytes),
                     counted(report.n_rounds, "round"), counted(report.n_commits, "commit"));
  return out + stage_table(outcome);
}

}  // namespace

int run_concat(Session& session, const ConcatArguments& arguments) {
  const Result<ConcatRequest> request = verbs::concat_request(arguments.words);
  if (!request.ok()) return session.fail(request.status());
  verbs::search_plugins_in(request->options.plugin_path);
  ProgressBar bar(std::filesystem::path(request->output).filename().string(),
                  session.speaks() && !arguments.quiet);
  const verbs::VerbRanks ranks = session.for_verb(arguments.quiet, bar);
  return run_and_show(session, arguments.json_path, arguments.quiet, [&]() -> Result<Shown> {
    const auto outcome = verbs::concat(ranks, arguments.words, *request);
    bar.clear();
    if (!outcome.ok()) return outcome.status();
    Shown shown{concat_text(*outcome), json_text(json_of(*outcome)), {}, exit_done};
    // What was left out must not go unseen, however quiet the rest is.
    for (const std::string& file : outcome->report.skipped) {
      shown.remarks.push_back("left out: " + file);
    }
    const std::vector<std::string>& remarks = outcome->report.remarks;
    if (!arguments.quiet) {
      shown.remarks.insert(shown.remarks.end(), remarks.begin(), remarks.end());
    }
    return shown;
  });
}

}  // namespace tailrace::cli
