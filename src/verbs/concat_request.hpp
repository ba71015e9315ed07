// concat: user options of a concatenation, converted to a ConcatRequest, and its outcome.
// src/concat does the work.

#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "concat/concat.hpp"
#include "core/options.hpp"
#include "verbs/report_fields.hpp"
#include "verbs/verb_ranks.hpp"

namespace tailrace {

template <class Visit>
void report_fields(const StageTime& time, Visit&& visit) {
  visit("mean_s", time.mean_s);
  visit("max_s", time.max_s);
}

}  // namespace tailrace

namespace tailrace::verbs {

/// Options of a concatenation as the user writes them.
struct ConcatArguments {
  std::vector<std::string> files;
  std::string list_path;  ///< Empty: `files` lists the files. "-": standard input.
  std::string output;
  bool append = false;
  bool resume = false;
  std::string sort_paths;              ///< Dataset names separated by commas, or "default"; empty:
                                       ///< no sorting.
  std::string on_error = "stop";       ///< "stop" or "skip".
  std::string on_different = "error";  ///< "error" or "keep-first".
  std::string tile;                    ///< Names of dimensions, separated by commas; empty: none.
  bool allow_missing_tiles = false;
  std::string key_names;       ///< Key names, separated by commas; empty: none.
  std::string chunk;           ///< "1MiB", "128x"; empty: the engine chooses.
  std::string codec = "keep";  ///< Codec and its settings.
  std::optional<std::uint32_t> level;
  std::string plain_below;  ///< Size below which datasets are stored contiguously, uncompressed;
                            ///< empty: 0.
  bool contiguous = false;
  bool dedup = false;
  double commit_every_s = 30;
  std::vector<KeyValue> file_options;  ///< Options of core/options: threads, memory, layout, ...
};

/// True if the options request layout=front. That layout is made after the concatenation, since the
/// engine does not know all chunks before it writes the first one.
bool wants_front(const ConcatArguments& arguments);

/// Convert the options, except the inputs. Not collective: the same on every rank.
/// @error invalid_argument  an option is invalid or contradicts another; names the option.
Result<ConcatRequest> concat_request(const ConcatArguments& arguments);

/// Everything that the report contains.
struct ConcatOutcome {
  ConcatRequest request;  ///< The request, including its inputs in order.
  int n_ranks = 1;
  std::uint64_t n_threads = 1;  ///< Threads of each rank.
  ConcatReport report;
};

/// Find and sort the inputs that `arguments` names, and concatenate them according to `request`.
/// Collective. @error as read_inputs, sort_inputs and concatenate.
Result<ConcatOutcome> concat(const VerbRanks& ranks, const ConcatArguments& arguments,
                             ConcatRequest request);

/// docs/concat.md explains the names.
template <class Visit>
void report_fields(const ConcatOutcome& outcome, Visit&& visit) {
  const ConcatRequest& request = outcome.request;
  const ConcatReport& report = outcome.report;
  document_head("concat", visit);
  visit("output", request.output);
  visit("n_inputs", request.inputs.size());
  visit("inputs", request.inputs);
  visit("n_ranks", outcome.n_ranks);
  visit("n_threads", outcome.n_threads);
  visit("fsync", request.options.sync);
  visit("memory_cap_bytes", request.options.memory_bytes);
  visit("peak_memory_bytes", report.peak_bytes);
  visit("n_files", report.n_files);
  visit("n_datasets", report.n_datasets);
  visit("n_empty", report.n_empty);
  visit("n_rows", report.n_rows);
  visit("n_uneven", report.n_uneven);
  visit("raw_bytes", report.raw_bytes);
  visit("input_bytes", report.input_bytes);
  visit("output_bytes", report.output_bytes);
  visit("metadata_bytes", report.metadata_bytes);
  visit("n_chunks", report.n_chunks);
  visit("n_copied", report.n_copied);
  visit("copied_bytes", report.copied_bytes);
  visit("n_encoded", report.n_chunks - std::min(report.n_copied, report.n_chunks));
  visit("n_shared", report.n_shared);
  visit("n_rounds", report.n_rounds);
  visit("n_commits", report.n_commits);
  visit("stages", report.stages);
  visit("total_s", report.total_s);
  visit("skipped", report.skipped);
  visit("remarks", report.remarks);
}

}  // namespace tailrace::verbs
