// Trace events as Chrome trace JSON, for ui.perfetto.dev and chrome://tracing.
//
// Every trace that Tailrace hands out is made here: trace-file= of a file, --trace of the commands,
// and the simulator's.

#pragma once

#include <span>
#include <string>

#include "core/status.hpp"
#include "core/trace.hpp"

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

}  // namespace tailrace
