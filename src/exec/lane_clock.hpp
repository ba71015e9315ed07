// Time of the lanes: the step's clock, busy intervals of lanes, and the application's marks on
// them.

#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <utility>
#include <vector>

#include "core/trace.hpp"

namespace tailrace {

// --- LaneClock: the step's time axis, and the sum and overlap of two lanes' busy intervals.

/// Seconds since a common start, on the monotonic clock.
class LaneClock {
 public:
  double now_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
  }

 private:
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
};

/// CPU time of the calling thread, in seconds.
double thread_cpu_s();

/// The intervals in which a lane was busy; several threads may belong to it and overlap.
class BusyIntervals {
 public:
  using Interval = std::pair<double, double>;

  void add(double start_s, double end_s) {
    const std::scoped_lock lock(mutex_);
    intervals_.emplace_back(start_s, end_s);
  }
  /// Sorted and merged: disjoint, in order.
  std::vector<Interval> merged() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Interval> intervals_;
};

/// Total length of disjoint intervals, in seconds.
double total_s(const std::vector<BusyIntervals::Interval>& intervals);
/// Length of the time that lies in both lists; each disjoint and in order.
double overlap_s(const std::vector<BusyIntervals::Interval>& a,
                 const std::vector<BusyIntervals::Interval>& b);

// --- ObstacleLog: the application's marks on its two lanes in the current iteration.
//
// Answers two questions. Does the application use this lane now? The lanes ask before each
// operation. Which obstacles did the iteration have? The forecast of the next one learns from them.
// Has no clock: callers pass seconds since the iteration began, all from one LaneClock.
//
// Invariants.
// 1. Marks may nest: the end of the outermost begin frees the lane. An end without a begin changes
//    nothing.
// 2. An obstacle that is open when the iteration ends is cut there. It continues in the next
//    iteration as a single begin, however deep it was nested. The next begin replaces it instead of
//    nesting in it, so begins without an end do not pile up over iterations.
// 3. Recorded obstacles are sorted and disjoint for any input times: a time before the last mark of
//    its lane counts as that mark's.
// 4. At most 2 x lane_obstacles_max obstacles a lane are held, and lane_obstacles_max returned.
//    Beyond that, the obstacles with the shortest gaps between them are merged (merge_obstacles).

/// Obstacles and length of an iteration that has ended.
struct RecordedIteration {
  LaneObstacles obstacles;
  double iteration_s = 0;
};

/// State of a lane, queried before each operation.
struct LaneState {
  bool blocked = false;     ///< The application uses the lane.
  std::size_t n_begun = 0;  ///< Obstacles of the iteration so far, including the current one.
};

/// Log of obstacles. Thread-safe. Not collective.
class ObstacleLog {
 public:
  /// Mark that the application begins, or ends, to use a lane, `now_s` seconds into the iteration.
  /// Cost: O(1), amortised.
  void begin(Lane lane, double now_s);
  void end(Lane lane, double now_s);

  /// End the iteration after `now_s` seconds, return its record, and begin the next at 0 s.
  RecordedIteration end_iteration(double now_s);

  LaneState state(Lane lane) const;

 private:
  struct LaneMarks {
    std::vector<Obstacle> ended;
    Obstacle open;
    std::size_t depth = 0;  ///< Begins without an end; 0: the lane is free.
    bool carried = false;   ///< The open obstacle continues one of the previous iteration.
    std::size_t n_begun = 0;
    double last_s = 0;  ///< Time of the lane's last mark.
  };
  LaneMarks& of(Lane lane) { return lane == Lane::main ? main_ : io_; }

  mutable std::mutex mutex_;
  LaneMarks main_;
  LaneMarks io_;
};

}  // namespace tailrace
