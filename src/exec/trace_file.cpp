// Conversion of plans to trace events, and of trace events to Chrome JSON.

#include "exec/trace_file.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "core/file_limit.hpp"

namespace tailrace {

// --- Chrome trace events.
//
// The text is composed directly: a trace may have 10^6 events, and a tree of JSON nodes would take
// a hundred times their memory. Source: "Trace Event Format" (the Chromium project), complete
// events "X" and metadata events "M".

namespace {

constexpr std::int32_t kMainLane = 0;
/// The rows of plans follow those of all lanes.
constexpr std::int32_t kFirstPlanRow = 1000;

/// Row of the application's I/O, above the I/O lane. It may overlap a write in progress, and events
/// of one row must not overlap. All other rows have their lane's number.
constexpr std::int32_t kApplicationIoRow = kIoLaneNumber - 1;

std::int32_t row_of(const TraceEvent& event) {
  if (event.kind == TraceEvent::Kind::application && event.lane == kIoLaneNumber) {
    return kApplicationIoRow;
  }
  return is_planned(event.kind) ? kFirstPlanRow + event.lane : event.lane;
}

std::string row_name(std::int32_t row) {
  if (row >= kFirstPlanRow) return "plan: " + row_name(row - kFirstPlanRow);
  if (row == kMainLane) return "main";
  if (row == kApplicationIoRow) return "application's I/O";
  if (row == kIoLaneNumber) return "I/O";
  if (row == kCommitLaneNumber) return "commit";
  return fmt::format("encode {}", row);
}

/// Format a JSON string literal, quotes included; bytes that are not UTF-8 become U+FFFD.
std::string json_literal(const std::string& text) {
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
  std::set<std::pair<std::int32_t, std::int32_t>> rows;
  for (const TraceEvent& event : events) rows.emplace(event.rank, row_of(event));

  bool first = true;
  const auto separate = [&] {
    if (!first) out += ",\n";
    first = false;
  };
  std::int32_t named_rank = -1;
  for (const auto& [rank, row] : rows) {
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
                   rank, row, row_name(row));
    separate();
    fmt::format_to(
        append,
        R"({{"ph":"M","name":"thread_sort_index","pid":{},"tid":{},"args":{{"sort_index":{}}}}})",
        rank, row, row);
  }
  for (const TraceEvent& event : events) {
    separate();
    fmt::format_to(append, R"({{"ph":"X","cat":"{}","name":{},"pid":{},"tid":{},"ts":{:.3f},)",
                   trace_kind_name(event.kind), json_literal(event_name(event, fields)), event.rank,
                   row_of(event), event.start_s * 1e6);
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

Status write_trace_file(const std::string& path, const std::string& text) {
  const FileLimitScope scope;
  std::ofstream file(path);
  file << text;
  file.close();
  if (file) return Status();
  return Status(Code::io_error, "writing the trace \"" + path + "\" failed");
}

// --- A plan as trace events.

void trace_plan(Trace& trace, std::int32_t rank, double start_s, std::int32_t first_lane,
                std::span<const PlannedJob> timeline, std::span<const ChunkJob> jobs,
                std::span<const FieldPlan> plans, std::span<const JobForecast> forecasts) {
  for (const PlannedJob& planned : timeline) {
    const ChunkJob& job = jobs[planned.job];
    const FieldPlan& plan = plans[job.field];
    TraceEvent event;
    event.kind = TraceEvent::Kind::plan_encode;
    event.rank = rank;
    event.lane = first_lane + static_cast<std::int32_t>(planned.thread);
    event.field_index = static_cast<std::int32_t>(plan.field_index);
    event.chunk_index = static_cast<std::int64_t>(job.chunk_index);
    event.start_s = start_s + planned.encode_start_s;
    event.end_s = start_s + planned.encode_end_s;
    event.n_bytes = plan.chunk_bytes();
    trace.add(event);

    event.kind = TraceEvent::Kind::plan_write;
    event.lane = kIoLaneNumber;
    event.start_s = start_s + planned.write_start_s;
    event.end_s = start_s + planned.write_end_s;
    const double encoded_bytes = std::max(forecasts[planned.job].encoded_bytes, 0.0);
    event.n_bytes = static_cast<std::uint64_t>(std::llround(encoded_bytes));
    trace.add(event);
  }
}

}  // namespace tailrace
