// A step's own copy of what was recorded for it.

#include "write_step.hpp"

#include <algorithm>
#include <string>
#include <utility>

namespace tailrace {

std::vector<FieldState*> Step::active(StepRecord& record) const {
  std::vector<FieldState*> fields;
  for (const std::size_t index : field_indices) fields.push_back(&record.fields[index]);
  return fields;
}

/// Moving a vector leaves its elements where they are, so that the plans' spans stay good.
void Step::take(StepRecord& record) {
  for (const std::size_t index : field_indices) {
    FieldState& field = record.fields[index];
    puts.push_back(std::move(field.puts));
    field.handed_over = !field.in_file;
  }
  attributes = std::exchange(record.attributes, {});
}

std::optional<PutPattern> repeatable_puts(const StepRecord& record) {
  if (!record.put_status.ok() || !record.attributes.empty()) return std::nullopt;
  PutPattern pattern;
  for (std::size_t f = 0; f < record.fields.size(); ++f) {
    const FieldState& field = record.fields[f];
    if (field.is_new()) return std::nullopt;
    if (!field.put_called) continue;
    pattern.field_indices.push_back(f);
    std::vector<Box>& boxes = pattern.boxes.emplace_back();
    for (const PutRecord& put : field.puts) {
      if (put.source != nullptr) return std::nullopt;
      boxes.push_back(put.box);
    }
  }
  return pattern;
}

void Step::count_delay(double seconds) {
  if (!(seconds > 0)) return;
  delay_s += seconds;
  ++report.n_delayed_obstacles;
  report.largest_delay_s = std::max(report.largest_delay_s, seconds);
}

Status check_can_be_handed_over(std::span<FieldState* const> active) {
  for (const FieldState* field : active) {
    const std::string name = "field \"" + field->definition.path + "\": ";
    if (needs_rounds(*field->layout)) {
      return Status(Code::unsupported, name + "layout " + std::string(field->layout->name()) +
                                           " waits for the sizes of all ranks, which mode=async "
                                           "and mode=in_situ cannot; use claimed or arena");
    }
    for (const PutRecord& put : field->puts) {
      if (put.source == nullptr) continue;
      return Status(Code::unsupported, name +
                                           "values that are pulled from a source are read "
                                           "within end_step: use mode=sync");
    }
  }
  return Status();
}

void add_up_idle_time(Comm& comm, const ExecutorReport& done, StepReport& report) {
  double slowest[5] = {report.exposed_s, report.handover_s, report.backpressure_s,
                       done.encode_here_s, report.largest_delay_s};
  comm.allreduce(std::span<double>(slowest), Reduction::max);
  report.exposed_s = slowest[0];
  report.handover_s = slowest[1];
  report.backpressure_s = slowest[2];
  report.idle_encode_s = slowest[3];
  report.largest_delay_s = slowest[4];
  std::uint64_t counts[2] = {report.n_delayed_obstacles, done.n_moved_writes};
  comm.allreduce(std::span<std::uint64_t>(counts), Reduction::sum);
  report.n_delayed_obstacles = counts[0];
  report.n_moved_writes = counts[1];
}

}  // namespace tailrace
