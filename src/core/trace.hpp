// Activities of lanes: obstacles, which the application marks, and trace events, which Tailrace
// records.

#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

namespace tailrace {

// --- Obstacle: a time span of an iteration in which the application needs a lane.
//
// The application marks obstacles (compute_begin/end, background_begin/end). exec records them,
// model forecasts those of the next iteration, and schedule plans around them. Paper:
// unavailability interval, [a_i, b_i] on the main thread, [a'_i, b'_i] on the background thread
// (Jin et al. 2024, 3.1).

/// The two machines of the flow shop.
enum class Lane : std::uint8_t {
  main,  ///< Encodes in the application's idle time (paper: main thread).
  io     ///< Writes while the application does not communicate (paper: background thread).
};

/// Seconds since the iteration began, [start_s, end_s).
struct Obstacle {
  double start_s = 0;
  double end_s = 0;

  double length_s() const { return end_s - start_s; }
};

/// Obstacles of both lanes; each list is sorted and disjoint.
struct LaneObstacles {
  std::vector<Obstacle> main;
  std::vector<Obstacle> io;

  const std::vector<Obstacle>& of(Lane lane) const { return lane == Lane::main ? main : io; }
  std::vector<Obstacle>& of(Lane lane) { return lane == Lane::main ? main : io; }
};

/// Most obstacles per lane and iteration that are recorded and forecast.
inline constexpr std::size_t kLaneObstaclesMax = 10'000;

/// Reduce sorted, disjoint obstacles to `n_most` by merging those separated by the shortest gaps.
/// The merged gaps are the idle time that is least useful. `n_most` > 0. Not collective.
/// Thread-safe. Cost: O(obstacles).
void merge_obstacles(std::vector<Obstacle>& obstacles, std::size_t n_most);

// --- Trace events: activity of each lane of each rank over time. They are collected in memory; the
// frontends write them.

/// Number of the I/O lane in traces; 0 is the main lane, 1 and up are encode threads.
inline constexpr std::int32_t kIoLaneNumber = 100;
/// Number of the lane that writes a step's metadata while the application runs (modes async and
/// in_situ, rank 0).
inline constexpr std::int32_t kCommitLaneNumber = 101;

/// One interval of work on one lane of one rank.
struct TraceEvent {
  /// Stages of a field's processing that take time.
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
    plan_encode,  ///< Time at which the order of work expects an encode; exec/trace_file.hpp.
    plan_write,
    application,  ///< The application's own use of a lane (an obstacle).
    end_step      ///< Modes async and in_situ: the complete call of end_step().
  };
  Kind kind = Kind::encode;
  std::int32_t rank = 0;
  std::int32_t lane = 0;          ///< 0 main, 1.. encode threads, or one of the numbers above.
  std::int32_t field_index = -1;  ///< -1: not of a single field.
  std::int64_t chunk_index = -1;  ///< -1: not of a single chunk (a write of many).
  double start_s = 0;             ///< Seconds since the file was created, rank's own clock.
  double end_s = 0;
  std::uint64_t n_bytes = 0;  ///< Encode: uncompressed; write: stored; else depends on the kind.
  std::uint64_t address = 0;  ///< Writes only.
};

/// Return true for the kinds of events that are plans, made before the work began.
bool is_planned(TraceEvent::Kind kind);

/// "encode", "write", ...
const char* trace_kind_name(TraceEvent::Kind kind);

/// An append-only list of events that every thread of a rank may extend.
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
