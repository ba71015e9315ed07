// end_step and wait of the C API, and their report as plain structs.

#include <cstdint>
#include <optional>
#include <utility>

#include "c_handle.hpp"

namespace tailrace {
namespace {

double ratio(std::uint64_t raw_bytes, std::uint64_t encoded_bytes) {
  if (raw_bytes == 0 || encoded_bytes == 0) return 1.0;
  return static_cast<double>(raw_bytes) / static_cast<double>(encoded_bytes);
}

tailrace_field_report plain(const FieldReport& report, tailrace_field field, const char* bound) {
  tailrace_field_report to{};
  to.struct_bytes = sizeof to;
  to.field = field;
  to.path = report.path.c_str();
  to.codec = report.codec.c_str();
  to.codec_version = report.codec_version.c_str();
  to.layout = report.layout.c_str();
  to.bound = bound;
  to.absolute_bound = report.absolute_bound;
  to.verified = report.verified ? 1 : 0;
  to.max_error = report.max_error;
  to.raw_bytes = report.raw_bytes;
  to.encoded_bytes = report.encoded_bytes;
  to.ratio = ratio(report.raw_bytes, report.encoded_bytes);
  to.n_chunks = report.n_chunks;
  to.n_raw_chunks = report.n_raw_chunks;
  to.encode_s = report.encode_s;
  to.pointwise_bound = report.pointwise_bound;
  to.predicted_bytes = report.predicted_bytes;
  to.mean_size_error = report.mean_size_error;
  to.n_overflow_chunks = report.n_overflow_chunks;
  to.reserved_bytes = report.reserved_bytes;
  to.book_bytes = report.book_bytes;
  to.book_ratio_loss = report.book_ratio_loss;
  to.book_saved_s = report.book_saved_s;
  return to;
}

tailrace_step_report plain(const StepReport& step) {
  tailrace_step_report to{};
  to.struct_bytes = sizeof to;
  to.step_index = step.step_index;
  to.n_fields = step.fields.size();
  to.raw_bytes = step.raw_bytes;
  to.encoded_bytes = step.encoded_bytes;
  to.ratio = ratio(step.raw_bytes, step.encoded_bytes);
  to.file_bytes = step.file_bytes;
  to.n_writes = step.n_writes;
  to.moved_bytes = step.piece_bytes;
  to.peak_memory_bytes = step.peak_memory_bytes;
  to.step_s = step.step_s;
  to.encode_s = step.encode_s;
  to.write_s = step.write_s;
  to.makespan_s = step.makespan_s;
  to.hidden_share = step.hidden_share;
  to.sync_s = step.sync_s;
  to.commit_s = step.commit_s;
  to.profile = step.profile.c_str();
  to.choose_s = step.choose_s;
  to.predict_s = step.predict_s;
  to.predicted_bytes = step.predicted_bytes;
  to.predicted_makespan_s = step.predicted_makespan_s;
  to.n_overflow_chunks = step.n_overflow_chunks;
  to.reserved_bytes = step.reserved_bytes;
  to.slack_bytes = step.slack_bytes;
  to.wait_s = step.wait_s;
  to.exposed_s = step.exposed_s;
  to.handover_s = step.handover_s;
  to.backpressure_s = step.backpressure_s;
  to.idle_encode_s = step.idle_encode_s;
  to.n_delayed_obstacles = step.n_delayed_obstacles;
  to.largest_delay_s = step.largest_delay_s;
  to.n_moved_writes = step.n_moved_writes;
  return to;
}

/// The report and everything it points to, in one place of its own.
std::unique_ptr<HeldReport> hold(StepReport step, const tailrace_file& file) {
  auto held = std::make_unique<HeldReport>();
  held->step = std::move(step);
  const std::vector<FieldReport>& fields = held->step.fields;
  for (const FieldReport& field : fields) held->bounds.push_back(error_bound_text(field.bound));
  for (std::size_t i = 0; i < fields.size(); ++i) {
    const auto known = file.field_of_path.find(fields[i].path);
    const tailrace_field number =
        known == file.field_of_path.end() ? TAILRACE_NO_FIELD : known->second;
    held->fields.push_back(plain(fields[i], number, held->bounds[i].c_str()));
  }
  for (const tailrace_field_report& field : held->fields) held->field_pointers.push_back(&field);
  held->report = plain(held->step);
  held->report.fields = held->field_pointers.data();
  return held;
}

}  // namespace
}  // namespace tailrace

extern "C" tailrace_error tailrace_file_end_step(tailrace_file* file,
                                                 const tailrace_step_report** report) {
  if (report != nullptr) *report = nullptr;
  return tailrace::guarded_on(file, [&]() -> tailrace::Status {
    file->last_report.reset();
    tailrace::Result<tailrace::StepReport> step = file->writer->end_step();
    if (!step.ok()) return step.status();
    if (!step->completed) return tailrace::Status();
    file->last_report = tailrace::hold(std::move(*step), *file);
    if (report != nullptr) *report = &file->last_report->report;
    return tailrace::Status();
  });
}

extern "C" tailrace_error tailrace_file_wait(tailrace_file* file,
                                             const tailrace_step_report** report) {
  if (report != nullptr) *report = nullptr;
  return tailrace::guarded_on(file, [&]() -> tailrace::Status {
    file->last_report.reset();
    tailrace::Result<std::optional<tailrace::StepReport>> step = file->writer->wait();
    if (!step.ok()) return step.status();
    if (!step->has_value()) return tailrace::Status();
    file->last_report = tailrace::hold(std::move(**step), *file);
    if (report != nullptr) *report = &file->last_report->report;
    return tailrace::Status();
  });
}
