// ObstacleLog: what the application marks on its two lanes in the iteration under way.
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
// beyond
//    that those between which the gaps are shortest become one (merge_obstacles).

#pragma once

#include <cstddef>
#include <mutex>
#include <vector>

#include "core/trace.hpp"

namespace tailrace {

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
