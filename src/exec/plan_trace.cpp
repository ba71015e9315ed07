// A plan as trace events.

#include "exec/plan_trace.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace tailrace {

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
    event.lane = io_lane_number;
    event.start_s = start_s + planned.write_start_s;
    event.end_s = start_s + planned.write_end_s;
    const double encoded_bytes = std::max(forecasts[planned.job].encoded_bytes, 0.0);
    event.n_bytes = static_cast<std::uint64_t>(std::llround(encoded_bytes));
    trace.add(event);
  }
}

}  // namespace tailrace
