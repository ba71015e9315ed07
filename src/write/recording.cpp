// Recordings as JSON, written and read.

#include "write/recording.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

namespace tailrace {
namespace {

using Json = nlohmann::json;

constexpr const char* kFormatName = "tailrace-iterations";
constexpr int kFormatVersion = 1;

Status corrupt(const std::string& text) { return Status(Code::corrupt, "recording: " + text); }

/// A list of `n_numbers` numbers each, not negative and finite.
Result<std::vector<std::vector<double>>> parse_rows(const Json& parent, const char* key,
                                                    std::size_t n_numbers) {
  std::vector<std::vector<double>> rows;
  const auto found = parent.find(key);
  if (found == parent.end() || !found->is_array()) {
    return corrupt(fmt::format("\"{}\" must be a list", key));
  }
  for (const Json& row : *found) {
    std::vector<double>& numbers = rows.emplace_back();
    if (row.is_array()) {
      for (const Json& number : row) {
        if (number.is_number()) numbers.push_back(number.get<double>());
      }
    }
    const bool fine = std::all_of(numbers.begin(), numbers.end(),
                                  [](double x) { return std::isfinite(x) && x >= 0; });
    if (numbers.size() != n_numbers || !fine || row.size() != n_numbers) {
      return corrupt(fmt::format("an entry of \"{}\" must be {} numbers of at least 0, is {}", key,
                                 n_numbers, row.dump()));
    }
  }
  return rows;
}

Status parse_obstacles(const Json& iteration, const char* key, std::vector<Obstacle>& obstacles) {
  TAILRACE_TAKE(const auto rows, parse_rows(iteration, key, 2));
  for (const std::vector<double>& row : rows) obstacles.push_back({row[0], row[1]});
  return Status();
}

Result<RecordedRankIteration> parse_iteration(const Json& json) {
  if (!json.is_object()) return corrupt("an iteration must be an object");
  RecordedRankIteration iteration;
  const auto length = json.find("iteration_s");
  if (length == json.end() || !length->is_number()) {
    return corrupt("\"iteration_s\" must be a number");
  }
  iteration.seen.iteration_s = length->get<double>();
  TAILRACE_TRY(parse_obstacles(json, "main", iteration.seen.obstacles.main));
  TAILRACE_TRY(parse_obstacles(json, "io", iteration.seen.obstacles.io));
  if (const auto makespan = json.find("makespan_s"); makespan != json.end()) {
    const double seconds = makespan->is_number() ? makespan->get<double>() : -1;
    if (!(seconds >= 0)) return corrupt("\"makespan_s\" must be a number of at least 0");
    iteration.makespan_s = seconds;
  }
  TAILRACE_TAKE(const auto chunks, parse_rows(json, "chunks", 4));
  for (const std::vector<double>& chunk : chunks) {
    // A double cannot count single bytes beyond 2^53.
    if (!(chunk[0] < 0x1p53 && chunk[1] < 0x1p53)) return corrupt("a chunk has 2^53 bytes or more");
    iteration.raw_bytes.push_back(static_cast<std::uint64_t>(chunk[0]));
    iteration.encoded_bytes.push_back(static_cast<std::uint64_t>(chunk[1]));
    iteration.seen.jobs.push_back({chunk[2], chunk[3]});
  }
  const Status fine = check_flow_shop(iteration.seen);
  if (!fine.ok()) return corrupt(fine.message());
  return iteration;
}

Status parse_rank(const Json& json, std::vector<RecordedRankIteration>& iterations) {
  const auto list = json.is_object() ? json.find("iterations") : json.end();
  if (list == json.end() || !list->is_array() || list->size() < 2) {
    return corrupt("\"iterations\" must be a list of at least two");
  }
  for (const Json& entry : *list) {
    Result<RecordedRankIteration> iteration = parse_iteration(entry);
    if (!iteration.ok()) {
      return iteration.status().within(fmt::format("iteration {}", iterations.size()));
    }
    iterations.push_back(std::move(*iteration));
    const std::size_t n_chunks = iterations.back().seen.jobs.size();
    if (n_chunks != iterations.front().seen.jobs.size()) {
      return corrupt(fmt::format("iteration {}: {} chunks, the first iteration has {}",
                                 iterations.size() - 1, n_chunks,
                                 iterations.front().seen.jobs.size()));
    }
  }
  return Status();
}

Json rows_of(const std::vector<Obstacle>& obstacles) {
  Json rows = Json::array();
  for (const Obstacle& obstacle : obstacles) rows.push_back({obstacle.start_s, obstacle.end_s});
  return rows;
}

}  // namespace

Result<Recording> parse_recording(std::string_view text) {
  const Json json = Json::parse(text, nullptr, false);
  if (!json.is_object() || json.value("format", Json()) != Json(kFormatName)) {
    return corrupt(fmt::format("must be a JSON object with \"format\": \"{}\"", kFormatName));
  }
  if (json.value("version", Json()) != Json(kFormatVersion)) {
    return corrupt(fmt::format("\"version\" must be {}", kFormatVersion));
  }
  Recording recording;
  const auto on_node = json.find("ranks_per_node");
  if (on_node == json.end() || !on_node->is_number_unsigned() ||
      on_node->get<std::uint64_t>() == 0) {
    return corrupt("\"ranks_per_node\" must be a whole number above 0");
  }
  recording.ranks_per_node = on_node->get<std::size_t>();
  const auto ranks = json.find("ranks");
  if (ranks == json.end() || !ranks->is_array() || ranks->empty()) {
    return corrupt("\"ranks\" must be a list of at least one");
  }
  for (const Json& entry : *ranks) {
    std::vector<RecordedRankIteration>& iterations = recording.ranks.emplace_back();
    TAILRACE_TRY(
        parse_rank(entry, iterations).within(fmt::format("rank {}", recording.ranks.size() - 1)));
    if (iterations.size() != recording.ranks.front().size()) {
      return corrupt(fmt::format("rank {}: {} iterations, rank 0 has {}",
                                 recording.ranks.size() - 1, iterations.size(),
                                 recording.ranks.front().size()));
    }
  }
  return recording;
}

std::string recording_text(const Recording& recording) {
  std::string text =
      fmt::format("{{\"format\": \"{}\", \"version\": {}, \"ranks_per_node\": {},\n \"ranks\": [",
                  kFormatName, kFormatVersion, recording.ranks_per_node);
  for (std::size_t r = 0; r < recording.ranks.size(); ++r) {
    text += r == 0 ? "\n  {\"iterations\": [" : ",\n  {\"iterations\": [";
    for (std::size_t i = 0; i < recording.ranks[r].size(); ++i) {
      const RecordedRankIteration& iteration = recording.ranks[r][i];
      Json chunks = Json::array();
      for (std::size_t job = 0; job < iteration.seen.jobs.size(); ++job) {
        chunks.push_back({iteration.raw_bytes[job], iteration.encoded_bytes[job],
                          iteration.seen.jobs[job].encode_s, iteration.seen.jobs[job].write_s});
      }
      const std::string makespan =
          iteration.makespan_s > 0
              ? fmt::format(", \"makespan_s\": {}", Json(iteration.makespan_s).dump())
              : "";
      text += fmt::format(
          "{}\n   {{\"iteration_s\": {}{}, \"main\": {}, \"io\": {},\n    \"chunks\": {}}}",
          i == 0 ? "" : ",", Json(iteration.seen.iteration_s).dump(), makespan,
          rows_of(iteration.seen.obstacles.main).dump(),
          rows_of(iteration.seen.obstacles.io).dump(), chunks.dump());
    }
    text += "]}";
  }
  return text + "]}\n";
}

}  // namespace tailrace
