// Trace events as Chrome trace JSON, for ui.perfetto.dev and chrome://tracing.
//
// Every trace that Tailrace hands out is made here: trace-file= of a file, --trace of the commands,
// and the simulator's.

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

/// One process per rank, one thread per lane ("main", "encode 1", "I/O"), one complete event per
/// TraceEvent, with the field, chunk, bytes and address as its arguments. Times in microseconds.
/// What was planned has rows of its own below ("plan: encode 1", "plan: I/O").
/// Not collective. Thread-safe.
/// @param fields  paths by field_index; an event of another index is named without one.
std::string trace_json(std::span<const TraceEvent> events, std::span<const std::string> fields);

/// Write `text` as the whole of the file `path`; "" only finds out whether that is possible.
/// Not collective. @error io_error  names the file.
Status write_trace_file(const std::string& path, const std::string& text);

// --- The plan of a step in its trace: when each chunk's encode and write were expected, on the
// axis and in the lanes of what is then measured, so that one look shows where the plan was wrong.

/// Add a plan_encode and a plan_write event for every planned job. Not collective. Thread-safe.
/// @param start_s    when the executor starts, in seconds on the trace's axis; the plan begins
///   there.
/// @param first_lane of those that encode: 1, or 0 where the application's thread does.
/// @param timeline   from plan_timeline(); its `job` indexes jobs and forecasts.
/// @param plans      one per field that the jobs refer to.
/// @param forecasts  parallel to jobs, for the bytes of the writes.
void trace_plan(Trace& trace, std::int32_t rank, double start_s, std::int32_t first_lane,
                std::span<const PlannedJob> timeline, std::span<const ChunkJob> jobs,
                std::span<const FieldPlan> plans, std::span<const JobForecast> forecasts);

}  // namespace tailrace
