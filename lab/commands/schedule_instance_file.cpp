// Parsing of instances key by key, so that an error names the key.

#include "schedule.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <iostream>
#include <iterator>

#include "cli_common.hpp"

namespace tailrace::cli {
namespace {

using Json = nlohmann::json;

/// Value for messages, truncated if long.
std::string shown(const Json& value) {
  std::string text = value.dump(-1, ' ', false, Json::error_handler_t::replace);
  constexpr std::size_t longest = 40;
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return text;
}

Status unexpected(const std::string& key, std::string_view expected, const Json& value) {
  return {Code::invalid_argument,
          fmt::format("{}: must be {}, is {}", key, expected, shown(value))};
}

/// Check for unknown keys. `key` is the place of `object` ("jobs[3]"); empty: the document itself.
Status check_keys(const Json& object, const std::string& key,
                  std::initializer_list<std::string_view> known) {
  if (!object.is_object()) {
    return unexpected(key.empty() ? "the instance" : key, "an object {...}", object);
  }
  for (const auto& [name, value] : object.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    return {Code::invalid_argument,
            fmt::format("{}{}{}: unknown key; known keys: {}", key, key.empty() ? "" : ".", name,
                        fmt::join(known, ", "))};
  }
  return {};
}

/// Read `object[name]` into `target`. check_flow_shop() checks whether the value makes sense.
Status read_seconds(const Json& object, const std::string& key, const char* name, double& target) {
  const auto found = object.find(name);
  const std::string full = key.empty() ? name : key + "." + name;
  if (found == object.end()) return {Code::invalid_argument, full + ": is missing"};
  if (!found->is_number()) return unexpected(full, "a number of seconds", *found);
  target = found->get<double>();
  if (target >= 0) return {};
  return unexpected(full, "at least 0 s", *found);
}

Status read_jobs(const Json& document, ScheduleInstance& instance) {
  const auto jobs = document.find("jobs");
  if (jobs == document.end()) return {Code::invalid_argument, "jobs: is missing"};
  if (!jobs->is_array()) return unexpected("jobs", "an array of objects", *jobs);
  for (std::size_t j = 0; j < jobs->size(); ++j) {
    const Json& job = (*jobs)[j];
    const std::string key = fmt::format("jobs[{}]", j);
    TAILRACE_TRY(check_keys(job, key, {"name", "encode_s", "write_s"}));
    JobCost cost;
    TAILRACE_TRY(read_seconds(job, key, "encode_s", cost.encode_s));
    TAILRACE_TRY(read_seconds(job, key, "write_s", cost.write_s));
    std::string name;
    if (const auto found = job.find("name"); found != job.end()) {
      if (!found->is_string()) return unexpected(key + ".name", "a string", *found);
      name = found->get<std::string>();
    }
    instance.shop.jobs.push_back(cost);
    instance.names.push_back(std::move(name));
  }
  return {};
}

Status read_lane(const Json& obstacles, const char* lane, std::vector<Obstacle>& target) {
  const auto found = obstacles.find(lane);
  if (found == obstacles.end()) return {};
  const std::string key = fmt::format("obstacles.{}", lane);
  if (!found->is_array()) return unexpected(key, "an array of [start, end]", *found);
  for (std::size_t i = 0; i < found->size(); ++i) {
    const Json& pair = (*found)[i];
    const std::string own = fmt::format("{}[{}]", key, i);
    const bool good =
        pair.is_array() && pair.size() == 2 && pair[0].is_number() && pair[1].is_number();
    if (!good) return unexpected(own, "[start, end] in seconds", pair);
    const Obstacle obstacle{pair[0].get<double>(), pair[1].get<double>()};
    if (!(obstacle.start_s >= 0 && obstacle.start_s < obstacle.end_s)) {
      return unexpected(own, "[start, end] with 0 <= start < end", pair);
    }
    if (!target.empty() && obstacle.start_s < target.back().end_s) {
      return {Code::invalid_argument,
              fmt::format("{}: starts at {} s, before the previous obstacle ends at {} s; "
                          "obstacles must be sorted and disjoint",
                          own, obstacle.start_s, target.back().end_s)};
    }
    target.push_back(obstacle);
  }
  return {};
}

nlohmann::ordered_json lane_json(const std::vector<Obstacle>& obstacles) {
  nlohmann::ordered_json lane = nlohmann::ordered_json::array();
  for (const Obstacle& obstacle : obstacles) lane.push_back({obstacle.start_s, obstacle.end_s});
  return lane;
}

}  // namespace

std::string ScheduleInstance::name_of(std::size_t job) const {
  if (job < names.size() && !names[job].empty()) return names[job];
  return std::to_string(job + 1);
}

Result<ScheduleInstance> parse_schedule_instance(std::string_view text) {
  const Json document = Json::parse(text, nullptr, false);
  if (document.is_discarded()) return Status(Code::invalid_argument, "not valid JSON");
  TAILRACE_TRY(check_keys(document, "", {"jobs", "obstacles", "iteration_s"}));
  ScheduleInstance instance;
  TAILRACE_TRY(read_jobs(document, instance));
  if (const auto obstacles = document.find("obstacles"); obstacles != document.end()) {
    TAILRACE_TRY(check_keys(*obstacles, "obstacles", {"main", "io"}));
    TAILRACE_TRY(read_lane(*obstacles, "main", instance.shop.obstacles.main));
    TAILRACE_TRY(read_lane(*obstacles, "io", instance.shop.obstacles.io));
  }
  if (document.contains("iteration_s")) {
    TAILRACE_TRY(read_seconds(document, "", "iteration_s", instance.shop.iteration_s));
  }
  TAILRACE_TRY(check_flow_shop(instance.shop));
  return instance;
}

Result<ScheduleInstance> read_schedule_instance(const std::string& path) {
  std::string text;
  if (path == "-") {
    text.assign(std::istreambuf_iterator<char>(std::cin), {});
  } else {
    TAILRACE_TAKE(text, read_text_file(path));
  }
  return parse_schedule_instance(text).within(path == "-" ? "standard input" : path);
}

nlohmann::ordered_json schedule_instance_json(const ScheduleInstance& instance) {
  nlohmann::ordered_json document;
  if (instance.shop.iteration_s > 0) document["iteration_s"] = instance.shop.iteration_s;
  document["jobs"] = nlohmann::ordered_json::array();
  for (std::size_t j = 0; j < instance.shop.jobs.size(); ++j) {
    nlohmann::ordered_json job;
    if (j < instance.names.size() && !instance.names[j].empty()) job["name"] = instance.names[j];
    job["encode_s"] = instance.shop.jobs[j].encode_s;
    job["write_s"] = instance.shop.jobs[j].write_s;
    document["jobs"].push_back(std::move(job));
  }
  document["obstacles"]["main"] = lane_json(instance.shop.obstacles.main);
  document["obstacles"]["io"] = lane_json(instance.shop.obstacles.io);
  return document;
}

}  // namespace tailrace::cli
