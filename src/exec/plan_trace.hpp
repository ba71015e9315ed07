// The plan of a step in its trace: when each chunk's encode and write were expected, on the axis
// and in the lanes of what is then measured, so that one look shows where the plan was wrong.

#pragma once

#include <cstdint>
#include <span>

#include "core/trace.hpp"
#include "exec/field_plan.hpp"
#include "exec/job_forecast.hpp"
#include "exec/ownership.hpp"
#include "schedule/order.hpp"

namespace tailrace {

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
