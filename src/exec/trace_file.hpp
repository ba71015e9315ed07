// Trace events as Chrome trace JSON, for ui.perfetto.dev and chrome://tracing.
//
// All traces of Tailrace are made here: trace-file= of a file, --trace of the commands, and those
// of the simulator.

#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/trace.hpp"
#include "exec/chunk_homes.hpp"
#include "exec/field_plan.hpp"
#include "exec/placer.hpp"
#include "schedule/order.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Format trace events as JSON: one process per rank, one thread per lane ("main", "encode 1",
/// "I/O"), one complete event per TraceEvent. Its arguments are field, chunk, bytes and address.
/// Times in microseconds. Planned events have separate rows below ("plan: encode 1", "plan: I/O").
/// Not collective. Thread-safe.
/// @param fields  paths by field_index; an event with another index is named without a path.
std::string trace_json(std::span<const TraceEvent> events, std::span<const std::string> fields);

/// Write `text` as the complete content of the file `path`; "" only checks whether that is
/// possible. Not collective. @error io_error  names the file.
Status write_trace_file(const std::string& path, const std::string& text);

// --- Plans in traces: the expected time of each chunk's encode and write.
//
// They are on the axis and in the lanes of the measured events, so that one look shows the errors
// of the plan.

/// Add a plan_encode and a plan_write event for every planned job. Not collective. Thread-safe.
/// @param start_s    start of the executor and of the plan, in seconds on the trace's axis.
/// @param first_lane first encode lane: 1, or 0 if the application's thread encodes.
/// @param timeline   from plan_timeline(); its `job` indexes jobs and forecasts.
/// @param plans      one per field that the jobs refer to.
/// @param forecasts  parallel to jobs, for the bytes of the writes.
void trace_plan(Trace& trace, std::int32_t rank, double start_s, std::int32_t first_lane,
                std::span<const PlannedJob> timeline, std::span<const ChunkJob> jobs,
                std::span<const FieldPlan> plans, std::span<const JobForecast> forecasts);

}  // namespace tailrace
