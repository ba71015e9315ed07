// Results of `tailrace-lab bench codecs` as tables, CSV and JSON.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "codecs_measure.hpp"
#include "machine_facts.hpp"

namespace tailrace::bench {

struct CodecsOutcome {
  CodecsOptions options;
  MachineFacts machine;
  std::string instruction_set;  ///< Widest instruction set that trz detected.
  std::vector<CodecsField> fields;
  std::vector<CodecsRow> rows;  ///< Sorted by field, then bound, then in the codecs' order.
};

/// Table of the last field in `outcome.fields`.
std::string codecs_field_text(const CodecsOutcome& outcome);
/// Means over the fields, per codec and bound.
std::string codecs_summary_text(const CodecsOutcome& outcome);
std::string codecs_csv(const CodecsOutcome& outcome);
nlohmann::ordered_json codecs_json(const CodecsOutcome& outcome);

}  // namespace tailrace::bench
