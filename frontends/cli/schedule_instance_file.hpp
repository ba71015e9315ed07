// Instances of the flow shop as JSON files, read and written.
//
//   {"iteration_s": 4,
//    "jobs": [{"name": "rho #0", "encode_s": 0.031, "write_s": 0.012}, ...],
//    "obstacles": {"main": [[0.3, 0.7], ...], "io": [[0, 0.1], ...]}}
//
// "name" and "iteration_s" are optional, and so are lanes without obstacles. A key that nobody
// knows is an error, since it is more likely misspelt than meant for somebody else.

#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.hpp"
#include "schedule/flow_shop.hpp"

namespace tailrace::cli {

/// An instance and what its jobs are called.
struct ScheduleInstance {
  FlowShop shop;
  std::vector<std::string> names{};  ///< By job; empty, or "" for a job: its number from 1 on.

  /// The job's name, as charts and messages say it.
  std::string name_of(std::size_t job) const;
};

/// Parse an instance; it passes check_flow_shop. Not collective. Thread-safe.
/// @error invalid_argument  names the key ("jobs[3].encode_s"), what was expected and what came.
Result<ScheduleInstance> parse_schedule_instance(std::string_view text);

/// The same from the file at `path`; "-" is standard input. @error not_found, invalid_argument
Result<ScheduleInstance> read_schedule_instance(const std::string& path);

/// The instance as JSON, which parse_schedule_instance() reads back digit by digit.
nlohmann::ordered_json schedule_instance_json(const ScheduleInstance& instance);

}  // namespace tailrace::cli
