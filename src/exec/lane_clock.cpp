// Interval arithmetic of the lanes; conversion of marks to obstacles.

#include "exec/lane_clock.hpp"

#include <time.h>

#include <algorithm>
#include <utility>

namespace tailrace {

double thread_cpu_s() {
  timespec now{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

std::vector<BusyIntervals::Interval> BusyIntervals::merged() const {
  std::vector<Interval> sorted;
  {
    const std::scoped_lock lock(mutex_);
    sorted = intervals_;
  }
  std::sort(sorted.begin(), sorted.end());
  std::vector<Interval> merged;
  for (const Interval& interval : sorted) {
    if (!merged.empty() && interval.first <= merged.back().second) {
      merged.back().second = std::max(merged.back().second, interval.second);
    } else {
      merged.push_back(interval);
    }
  }
  return merged;
}

double total_s(const std::vector<BusyIntervals::Interval>& intervals) {
  double total = 0;
  for (const auto& [start, end] : intervals) total += end - start;
  return total;
}

double overlap_s(const std::vector<BusyIntervals::Interval>& a,
                 const std::vector<BusyIntervals::Interval>& b) {
  double total = 0;
  std::size_t i = 0;
  std::size_t j = 0;
  while (i < a.size() && j < b.size()) {
    total += std::max(0.0, std::min(a[i].second, b[j].second) - std::max(a[i].first, b[j].first));
    (a[i].second < b[j].second ? i : j) += 1;
  }
  return total;
}

// --- Marks become obstacles. The numbers in brackets are invariants of the header.

namespace {

/// Return `now_s`, but neither a time before `last_s` nor NaN [3].
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
  if (marks.ended.size() == 2 * kLaneObstaclesMax) {
    merge_obstacles(marks.ended, kLaneObstaclesMax);  // [4]
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
    merge_obstacles(marks.ended, kLaneObstaclesMax);
    recorded.obstacles.of(lane) = std::move(marks.ended);
    marks = LaneMarks();
    if (!goes_on) continue;
    marks.depth = 1;  // [2], open from 0 s on.
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
