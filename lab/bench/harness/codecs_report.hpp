// What `tailrace-lab bench codecs` found: as tables, as CSV and as JSON.

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
  std::string instruction_set;  ///< The widest that trz found here.
  std::vector<CodecsField> fields;
  std::vector<CodecsRow> rows;  ///< By field, then by bound, then in the order of the codecs.
};

/// The table of one field, the last of `outcome.fields`.
std::string codecs_field_text(const CodecsOutcome& outcome);
/// Per codec and bound: means over the fields.
std::string codecs_summary_text(const CodecsOutcome& outcome);
std::string codecs_csv(const CodecsOutcome& outcome);
nlohmann::ordered_json codecs_json(const CodecsOutcome& outcome);

}  // namespace tailrace::bench
