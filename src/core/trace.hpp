// Trace events: what each lane of each rank did when. Collected in memory, written by the
// frontends.

#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

namespace tailrace {

/// The I/O lane's number in traces; 0 is the main lane, 1 and up are encode threads.
inline constexpr std::int32_t io_lane_number = 100;
/// What writes the metadata of a step beside the application (modes async and in_situ, rank 0).
inline constexpr std::int32_t commit_lane_number = 101;

/// One interval of work on one lane of one rank.
struct TraceEvent {
  /// The stages of a field's way that take time.
  enum class Kind : std::uint8_t {
    read,
    exchange,
    encode,
    verify,
    wait,
    write,
    index,
    commit,
    sync,
    plan_encode,  ///< When the order of work expects an encode; exec/plan_trace.hpp.
    plan_write,
    application,  ///< The application's own use of a lane (an obstacle).
    end_step      ///< Modes async and in_situ: the call, whatever is done in it.
  };
  Kind kind = Kind::encode;
  std::int32_t rank = 0;
  std::int32_t lane = 0;          ///< 0 main, 1.. encode threads, or a number above.
  std::int32_t field_index = -1;  ///< -1: belongs to no single field.
  std::int64_t chunk_index = -1;  ///< -1: belongs to no single chunk (a write of many).
  double start_s = 0;             ///< Seconds since the file was created, rank's own clock.
  double end_s = 0;
  std::uint64_t n_bytes = 0;  ///< Encode: uncompressed; write: stored; else as it applies.
  std::uint64_t address = 0;  ///< Writes only.
};

/// Whether an event was planned before work began, and did not happen.
bool is_planned(TraceEvent::Kind kind);

/// "encode", "write", ...
const char* trace_kind_name(TraceEvent::Kind kind);

/// An append-only list that every thread of a rank may add to.
class Trace {
 public:
  void add(const TraceEvent& event) {
    const std::scoped_lock lock(mutex_);
    events_.push_back(event);
  }
  std::vector<TraceEvent> take() {
    const std::scoped_lock lock(mutex_);
    return std::move(events_);
  }

 private:
  std::mutex mutex_;
  std::vector<TraceEvent> events_;
};

}  // namespace tailrace
