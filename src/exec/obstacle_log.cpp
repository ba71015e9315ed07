// Marks become obstacles. The numbers in brackets are the invariants of the header.

#include "exec/obstacle_log.hpp"

#include <algorithm>
#include <utility>

namespace tailrace {
namespace {

/// A time that does not go back, nor is no number [3].
double not_before(double last_s, double now_s) { return std::max(last_s, now_s); }

}  // namespace

void ObstacleLog::begin(Lane lane, double now_s) {
  const std::scoped_lock lock(mutex_);
  LaneMarks& marks = of(lane);
  marks.last_s = not_before(marks.last_s, now_s);
  if (std::exchange(marks.carried, false)) return;  // [2]
  if (marks.depth++ > 0) return;                    // [1]
  marks.open.start_s = marks.last_s;
  ++marks.n_begun;
}

void ObstacleLog::end(Lane lane, double now_s) {
  const std::scoped_lock lock(mutex_);
  LaneMarks& marks = of(lane);
  marks.last_s = not_before(marks.last_s, now_s);
  if (marks.depth == 0 || --marks.depth > 0) return;  // [1]
  marks.carried = false;
  marks.ended.push_back({marks.open.start_s, marks.last_s});
  if (marks.ended.size() == 2 * lane_obstacles_max) {
    merge_obstacles(marks.ended, lane_obstacles_max);  // [4]
  }
}

RecordedIteration ObstacleLog::end_iteration(double now_s) {
  const std::scoped_lock lock(mutex_);
  RecordedIteration recorded;
  recorded.iteration_s = std::max({main_.last_s, io_.last_s, now_s});
  for (const Lane lane : {Lane::main, Lane::io}) {
    LaneMarks& marks = of(lane);
    const bool goes_on = marks.depth > 0;
    if (goes_on) marks.ended.push_back({marks.open.start_s, recorded.iteration_s});
    merge_obstacles(marks.ended, lane_obstacles_max);
    recorded.obstacles.of(lane) = std::move(marks.ended);
    marks = LaneMarks();
    if (!goes_on) continue;
    marks.depth = 1;  // [2], from 0 s on.
    marks.carried = true;
    marks.n_begun = 1;
  }
  return recorded;
}

LaneState ObstacleLog::state(Lane lane) const {
  const std::scoped_lock lock(mutex_);
  const LaneMarks& marks = lane == Lane::main ? main_ : io_;
  return {marks.depth > 0, marks.n_begun};
}

}  // namespace tailrace
