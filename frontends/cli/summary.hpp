// The one-screen summary of a repack, and the same numbers as JSON.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/options.hpp"
#include "repack_plan.hpp"
#include "write/write.hpp"

namespace tailrace::cli {

/// The version of the JSON documents of all commands; raised when a key changes its meaning.
inline constexpr int json_schema_version = 1;

/// Everything that the summary tells of one repacked file.
struct RepackOutcome {
  std::string input_path;
  std::string input_format;
  std::uint64_t input_bytes = 0;
  std::string output_path;
  int n_ranks = 1;
  std::uint64_t n_threads = 1;  ///< Encode threads a rank.
  FileOptions options;
  std::vector<PlannedField> plan;  ///< In the order of report.fields.
  StepReport report;
  double total_s = 0;                ///< From opening the input to the closed output.
  std::vector<std::string> remarks;  ///< What could not be carried over.
};

/// The tables, at most 100 columns wide and about one screen high.
std::string summary_text(const RepackOutcome& outcome);

/// The same numbers, and all fields. docs/cli.md explains the keys.
nlohmann::ordered_json summary_json(const RepackOutcome& outcome);

}  // namespace tailrace::cli
