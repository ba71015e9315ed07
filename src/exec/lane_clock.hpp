// The lanes' time: the step's clock, the intervals in which lanes are busy, and what the
// application marks on them.

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

/// Seconds for which this thread has run on a core.
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

// --- ObstacleLog: what the application marks on its two lanes in the iteration under way.
//
// Answers two questions: does the application use this lane now (the lanes ask before each
// operation), and which obstacles did the iteration have (the forecast of the next one learns from
// them). Knows no clock: seconds since the iteration began come from the caller, of one LaneClock.
//
// Invariants.
// 1. Marks may nest: a lane is free again with the end of the outermost begin. An end without a
//    begin changes nothing.
// 2. An obstacle that is open when the iteration ends is cut there and goes on in the next one, as
//    one begin however deep it was; the next begin takes its place instead of nesting in it. So
//    begins without an end do not pile up over iterations.
// 3. Recorded obstacles are sorted and disjoint whatever the times: one before the last mark of
//    its lane counts as that mark's.
// 4. At most 2 x lane_obstacles_max obstacles a lane are held, lane_obstacles_max handed out:
//    beyond that those between which the gaps are shortest become one (merge_obstacles).

/// An iteration as it was.
struct RecordedIteration {
  LaneObstacles obstacles;
  double iteration_s = 0;
};

/// What a lane's gate asks.
struct LaneState {
  bool blocked = false;     ///< The application uses the lane.
  std::size_t n_begun = 0;  ///< Obstacles of the iteration so far, the one under way among them.
};

/// Thread-safe. Not collective.
class ObstacleLog {
 public:
  /// The application begins, or ends, to use a lane, `now_s` seconds into the iteration.
  /// Cost: O(1), amortised.
  void begin(Lane lane, double now_s);
  void end(Lane lane, double now_s);

  /// The iteration has lasted `now_s` seconds: hand out what it had, and begin the next, whose
  /// seconds count from 0 again.
  RecordedIteration end_iteration(double now_s);

  LaneState state(Lane lane) const;

 private:
  struct LaneMarks {
    std::vector<Obstacle> ended;
    Obstacle open;
    std::size_t depth = 0;  ///< Begins without their end; 0: the lane is free.
    bool carried = false;   ///< The open one comes from the iteration before.
    std::size_t n_begun = 0;
    double last_s = 0;  ///< Of the lane's last mark.
  };
  LaneMarks& of(Lane lane) { return lane == Lane::main ? main_ : io_; }

  mutable std::mutex mutex_;
  LaneMarks main_;
  LaneMarks io_;
};

}  // namespace tailrace
