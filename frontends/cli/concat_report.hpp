// What a concatenation came to: one screen of text, and the same numbers as JSON.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "concat/concat.hpp"

namespace tailrace::cli {

/// Everything that the report tells.
struct ConcatOutcome {
  ConcatRequest request;
  int n_ranks = 1;
  std::uint64_t n_threads = 1;  ///< Of each rank.
  ConcatReport report;
};

/// At most 100 columns wide. The skipped files and remarks are not in it: they go to stderr.
std::string concat_text(const ConcatOutcome& outcome);

/// docs/concat.md explains the keys.
nlohmann::ordered_json concat_json(const ConcatOutcome& outcome);

}  // namespace tailrace::cli
