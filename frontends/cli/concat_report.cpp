// The screen that a concatenation ends with: what came in and out, chunks, and where time went.

#include "concat_report.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <string_view>

#include "cli_common.hpp"
#include "summary.hpp"
#include "text_table.hpp"

namespace tailrace::cli {
namespace {

constexpr std::size_t most_path_columns = 58;

/// "3 files, first to last (12.4 MB)".
std::string inputs_text(const ConcatOutcome& outcome) {
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

std::string stage_table(const ConcatOutcome& outcome) {
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

}  // namespace

std::string concat_text(const ConcatOutcome& outcome) {
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

nlohmann::ordered_json concat_json(const ConcatOutcome& outcome) {
  const ConcatReport& report = outcome.report;
  nlohmann::ordered_json document = {{"schema_version", json_schema_version},
                                     {"command", "concat"}};
  document["output"] = outcome.request.output;
  document["n_inputs"] = outcome.request.inputs.size();
  document["inputs"] = outcome.request.inputs;
  document["n_ranks"] = outcome.n_ranks;
  document["n_threads"] = outcome.n_threads;
  document["fsync"] = outcome.request.options.sync;
  document["memory_cap_bytes"] = outcome.request.options.memory_bytes;
  document["peak_memory_bytes"] = report.peak_bytes;
  document["n_files"] = report.n_files;
  document["n_datasets"] = report.n_datasets;
  document["n_empty"] = report.n_empty;
  document["n_rows"] = report.n_rows;
  document["raw_bytes"] = report.raw_bytes;
  document["input_bytes"] = report.input_bytes;
  document["output_bytes"] = report.output_bytes;
  document["metadata_bytes"] = report.metadata_bytes;
  document["n_chunks"] = report.n_chunks;
  document["n_copied"] = report.n_copied;
  document["copied_bytes"] = report.copied_bytes;
  document["n_encoded"] = report.n_chunks - std::min(report.n_copied, report.n_chunks);
  document["n_shared"] = report.n_shared;
  document["n_rounds"] = report.n_rounds;
  document["n_commits"] = report.n_commits;
  document["stages"] = nlohmann::ordered_json::object();
  for (const auto& [stage, time] : report.stages) {
    document["stages"][stage] = {{"mean_s", time.mean_s}, {"max_s", time.max_s}};
  }
  document["total_s"] = report.total_s;
  document["skipped"] = report.skipped;
  document["remarks"] = report.remarks;
  return document;
}

}  // namespace tailrace::cli
