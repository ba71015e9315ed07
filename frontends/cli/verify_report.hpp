// What `tailrace verify` found, as a table with the offending values, and as JSON.

#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "verify_task.hpp"

namespace tailrace::cli {

struct VerifyOutcome {
  std::string original_path;
  std::string compressed_path;
  std::vector<VerifyTask> tasks;
  std::vector<VerifyFinding> findings;  ///< One per task, over all ranks.
  std::vector<std::string> problems;    ///< Fields that are missing or of another shape or type.
};

/// Whether a field keeps its promise.
bool kept(const VerifyTask& task, const VerifyFinding& finding);
/// Fields that do not, and problems.
std::uint64_t n_failures(const VerifyOutcome& outcome);

std::string verify_text(const VerifyOutcome& outcome);
nlohmann::ordered_json verify_json(const VerifyOutcome& outcome);

}  // namespace tailrace::cli
