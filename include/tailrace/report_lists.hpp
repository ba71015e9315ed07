// Lists of the numbers in each report, each named once: X(type, name, known).
//
// These lists generate the reports of tailrace.hpp and of the engine, and the JSON of `tailrace
// repack`. They also generate the copies between these and the structs of tailrace.h and reader.h.
// To add a number, add a line here and one in those headers. The headers are written by hand, since
// their layout is fixed and their comments explain the numbers; assertions compare both where the
// structs are filled. `known`: in JSON it is null unless always / verified / predicted / booked.
// These are macros that leave no names in the namespace of a program that includes this header.

#pragma once

/// Numbers of a field in a step. A report also has the field's path, its bound as requested, and
/// its ratio.
#define TAILRACE_FIELD_REPORT_LIST(X)          \
  X(std::string, codec, always)                \
  X(std::string, codec_version, always)        \
  X(std::string, layout, always)               \
  X(double, absolute_bound, always)            \
  X(double, pointwise_bound, always)           \
  X(bool, verified, always)                    \
  X(double, max_error, verified)               \
  X(std::uint64_t, n_chunks, always)           \
  X(std::uint64_t, n_raw_chunks, always)       \
  X(std::uint64_t, raw_bytes, always)          \
  X(std::uint64_t, encoded_bytes, always)      \
  X(std::uint64_t, predicted_bytes, predicted) \
  X(double, mean_size_error, predicted)        \
  X(std::uint64_t, n_overflow_chunks, always)  \
  X(std::uint64_t, reserved_bytes, always)     \
  X(std::uint64_t, book_bytes, always)         \
  X(double, book_ratio_loss, booked)           \
  X(double, book_saved_s, booked)              \
  X(double, encode_s, always)

/// Numbers of a step. A report also has its fields and its ratio.
#define TAILRACE_STEP_REPORT_LIST(X)           \
  X(std::uint64_t, file_bytes, always)         \
  X(std::uint64_t, peak_memory_bytes, always)  \
  X(std::uint64_t, raw_bytes, always)          \
  X(std::uint64_t, encoded_bytes, always)      \
  X(std::uint64_t, predicted_bytes, predicted) \
  X(double, predict_s, predicted)              \
  X(double, predicted_makespan_s, predicted)   \
  X(std::uint64_t, reserved_bytes, always)     \
  X(std::uint64_t, n_overflow_chunks, always)  \
  X(std::uint64_t, slack_bytes, always)        \
  X(std::uint64_t, n_writes, always)           \
  X(std::string, profile, always)              \
  X(double, choose_s, always)                  \
  X(double, encode_s, always)                  \
  X(double, write_s, always)                   \
  X(double, wait_s, always)                    \
  X(double, makespan_s, always)                \
  X(double, hidden_share, always)              \
  X(double, sync_s, always)                    \
  X(double, commit_s, always)                  \
  X(double, step_s, always)

/// Numbers of an application's step; a repack has none of these.
#define TAILRACE_APPLICATION_STEP_LIST(X)       \
  X(std::uint64_t, step_index, always)          \
  X(std::uint64_t, moved_bytes, always)         \
  X(double, exposed_s, always)                  \
  X(double, handover_s, always)                 \
  X(double, backpressure_s, always)             \
  X(double, idle_encode_s, always)              \
  X(std::uint64_t, n_delayed_obstacles, always) \
  X(double, largest_delay_s, always)            \
  X(std::uint64_t, n_moved_writes, always)      \
  X(std::uint64_t, n_waiting_steps, always)     \
  X(std::uint64_t, waiting_bytes, always)

/// Counters of a reader on this rank.
#define TAILRACE_READ_REPORT_LIST(X)       \
  X(std::uint64_t, n_slabs, always)        \
  X(std::uint64_t, value_bytes, always)    \
  X(std::uint64_t, n_chunks, always)       \
  X(std::uint64_t, n_chunk_hits, always)   \
  X(std::uint64_t, decoded_bytes, always)  \
  X(std::uint64_t, fetched_bytes, always)  \
  X(std::uint64_t, n_reads, always)        \
  X(std::uint64_t, received_bytes, always) \
  X(double, index_s, always)               \
  X(double, fetch_s, always)               \
  X(double, decode_s, always)

/// A member of a report.
#define TAILRACE_REPORT_MEMBER(type, name, known) type name{};
