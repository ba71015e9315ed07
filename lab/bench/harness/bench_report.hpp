// Table on stdout and JSON document of the same numbers.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "machine_facts.hpp"
#include "measure.hpp"

namespace tailrace::bench {

/// One screen: the setting, one row per method, and how to interpret it.
std::string report_text(const BenchContext& context, const MachineFacts& machine,
                        const std::vector<Row>& rows);

/// `rows` with their setting as JSON; lab/bench/README.md explains the keys.
nlohmann::ordered_json report_json(const BenchContext& context, const MachineFacts& machine,
                                   const std::vector<Row>& rows);

}  // namespace tailrace::bench
