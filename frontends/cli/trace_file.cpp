// Writing Chrome trace events. The text is put together directly: a trace may hold 10^6 events, and
// a tree of JSON nodes would take a hundred times their memory.
// Source: "Trace Event Format" (the Chromium project), complete events "X" and metadata events "M".

#include "trace_file.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace tailrace::cli {
namespace {

constexpr std::int32_t main_lane = 0;
constexpr std::int32_t io_lane = 100;

std::string lane_name(std::int32_t lane) {
  if (lane == main_lane) return "main";
  if (lane == io_lane) return "I/O";
  return fmt::format("encode {}", lane);
}

/// A JSON string literal, quotes included; bytes that are no UTF-8 become U+FFFD.
std::string quoted(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::string event_name(const TraceEvent& event, std::span<const std::string> fields) {
  const auto field = static_cast<std::size_t>(event.field_index);
  std::string name = trace_kind_name(event.kind);
  if (event.field_index >= 0 && field < fields.size()) name += " " + fields[field];
  if (event.chunk_index >= 0) name += fmt::format(" #{}", event.chunk_index);
  return name;
}

}  // namespace

std::string trace_json(std::span<const TraceEvent> events, std::span<const std::string> fields) {
  std::string out = "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [\n";
  const auto append = std::back_inserter(out);
  std::set<std::pair<std::int32_t, std::int32_t>> lanes;
  for (const TraceEvent& event : events) lanes.emplace(event.rank, event.lane);

  bool first = true;
  const auto separate = [&] {
    if (!first) out += ",\n";
    first = false;
  };
  std::int32_t named_rank = -1;
  for (const auto& [rank, lane] : lanes) {
    if (rank != named_rank) {
      separate();
      fmt::format_to(append,
                     R"({{"ph":"M","name":"process_name","pid":{0},"args":{{"name":"rank {0}"}}}})",
                     rank);
      named_rank = rank;
    }
    separate();
    fmt::format_to(append,
                   R"({{"ph":"M","name":"thread_name","pid":{},"tid":{},"args":{{"name":"{}"}}}})",
                   rank, lane, lane_name(lane));
    separate();
    fmt::format_to(
        append,
        R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
        rank, lane, lane);
  }
  for (const TraceEvent& event : events) {
    separate();
    fmt::format_to(append, R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{:.3f},)",
                   trace_kind_name(event.kind), quoted(event_name(event, fields)), event.rank,
                   event.lane, event.start_s * 1e6);
    fmt::format_to(append, R"("dur":{:.3f},"args":{{"bytes":{})",
                   (event.end_s - event.start_s) * 1e6, event.n_bytes);
    if (event.kind == TraceEvent::Kind::write) {
      fmt::format_to(append, R"(,"address":{})", event.address);
    }
    out += "}}";
  }
  out += "\n]}\n";
  return out;
}

}  // namespace tailrace::cli
