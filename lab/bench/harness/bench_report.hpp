// The table on stdout and the JSON document: the same numbers.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "machine_facts.hpp"
#include "measure.hpp"

namespace tailrace::bench {

/// One screen: what was run, one row a method, and what to make of it.
std::string report_text(const BenchContext& context, const MachineFacts& machine,
                        const std::vector<Row>& rows);

/// `rows` and what they stand on; keys are explained in lab/bench/README.md.
nlohmann::ordered_json report_json(const BenchContext& context, const MachineFacts& machine,
                                   const std::vector<Row>& rows);

}  // namespace tailrace::bench
