// The reports of Tailrace's C++ API: those of tailrace.h as values that may be kept.
//
// A tailrace_step_report is the file's and goes with its next step; these are copies of it. Units
// and meanings stand in tailrace.h. Included by tailrace.hpp.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <tailrace/tailrace.h>

namespace tailrace {
inline namespace api {

/// What became of one field in one step; see tailrace_field_report for units.
struct FieldReport {
  std::string path;
  std::string codec;
  std::string codec_version;
  std::string layout;
  std::string bound;
  double absolute_bound = 0;
  bool verified = false;
  double max_error = 0;
  std::uint64_t raw_bytes = 0;
  std::uint64_t encoded_bytes = 0;
  double ratio = 1;
  std::uint64_t n_chunks = 0;
  std::uint64_t n_raw_chunks = 0;
  double encode_s = 0;
  double pointwise_bound = 0;
  std::uint64_t predicted_bytes = 0;
  double mean_size_error = 0;
  std::uint64_t n_overflow_chunks = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint64_t book_bytes = 0;
  double book_ratio_loss = 0;
  double book_saved_s = 0;
};

/// What became of one step; see tailrace_step_report for units.
struct StepReport {
  std::uint64_t step_index = 0;
  std::vector<FieldReport> fields;
  std::uint64_t raw_bytes = 0;
  std::uint64_t encoded_bytes = 0;
  double ratio = 1;
  std::uint64_t file_bytes = 0;
  std::uint64_t n_writes = 0;
  std::uint64_t moved_bytes = 0;
  std::uint64_t peak_memory_bytes = 0;
  double step_s = 0;
  double encode_s = 0;
  double write_s = 0;
  double makespan_s = 0;
  double hidden_share = 0;
  double sync_s = 0;
  double commit_s = 0;
  std::string profile;
  double choose_s = 0;
  double predict_s = 0;
  std::uint64_t predicted_bytes = 0;
  double predicted_makespan_s = 0;
  std::uint64_t n_overflow_chunks = 0;
  std::uint64_t reserved_bytes = 0;
  std::uint64_t slack_bytes = 0;
  double wait_s = 0;
  double exposed_s = 0;
  double handover_s = 0;
  double backpressure_s = 0;
  double idle_encode_s = 0;
  std::uint64_t n_delayed_obstacles = 0;
  double largest_delay_s = 0;
  std::uint64_t n_moved_writes = 0;
  /// False: there is no report yet, and all else is 0. From end_step() of the modes async and
  /// in_situ, which hand a step over and report the one before: the first has none before it.
  bool completed = true;
};

/// A copy that may be kept. Not collective. Thread-safe.
// clang-format off
inline FieldReport copy_of(const tailrace_field_report& from) {
  return {from.path, from.codec, from.codec_version, from.layout, from.bound, from.absolute_bound,
          from.verified != 0, from.max_error, from.raw_bytes, from.encoded_bytes, from.ratio,
          from.n_chunks, from.n_raw_chunks, from.encode_s, from.pointwise_bound,
          from.predicted_bytes, from.mean_size_error, from.n_overflow_chunks,
          from.reserved_bytes,
          from.book_bytes,
          from.book_ratio_loss,
          from.book_saved_s};
}

inline StepReport copy_of(const tailrace_step_report& from) {
  StepReport to{from.step_index, {}, from.raw_bytes, from.encoded_bytes, from.ratio,
                from.file_bytes, from.n_writes, from.moved_bytes, from.peak_memory_bytes,
                from.step_s, from.encode_s, from.write_s, from.makespan_s, from.hidden_share,
                from.sync_s, from.commit_s, from.profile, from.choose_s, from.predict_s,
                from.predicted_bytes, from.predicted_makespan_s, from.n_overflow_chunks,
                from.reserved_bytes, from.slack_bytes, from.wait_s, from.exposed_s,
                from.handover_s, from.backpressure_s, from.idle_encode_s,
                from.n_delayed_obstacles, from.largest_delay_s, from.n_moved_writes};
  for (std::uint64_t i = 0; i < from.n_fields; ++i) to.fields.push_back(copy_of(*from.fields[i]));
  return to;
}
// clang-format on

}  // namespace api
}  // namespace tailrace
