// Trace events as Chrome trace JSON, for ui.perfetto.dev and chrome://tracing.

#pragma once

#include <span>
#include <string>

#include "core/trace.hpp"

namespace tailrace::cli {

/// One process per rank, one thread per lane ("main", "encode 1", "I/O"), one complete event per
/// TraceEvent, with the field, chunk, bytes and address as its arguments. Times in microseconds.
std::string trace_json(std::span<const TraceEvent> events, std::span<const std::string> fields);

}  // namespace tailrace::cli
