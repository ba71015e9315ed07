// The gaps of a lane. A gap that is used up is dropped, also where an operation of no length could
// still stand in it; such an operation takes the next gap.

#include "schedule/lane_fit.hpp"

namespace tailrace {

LaneGaps::LaneGaps(std::span<const Obstacle> obstacles) {
  gaps_.reserve(obstacles.size() + 1);
  double free_s = 0;
  for (const Obstacle& obstacle : obstacles) {
    if (obstacle.start_s > free_s) gaps_.push_back({free_s, obstacle.start_s});
    free_s = obstacle.end_s;
  }
  gaps_.push_back({free_s});
}

double LaneGaps::place(double ready_s, double length_s) {
  std::size_t i = 0;
  double start_s = std::max(gaps_[i].start_s, ready_s);
  while (start_s + length_s > gaps_[i].end_s + fit_slack_s) {
    ++i;  // The last gap has no end, so that this ends there.
    start_s = std::max(gaps_[i].start_s, ready_s);
  }
  const Gap behind = {start_s + length_s, gaps_[i].end_s};
  gaps_[i].end_s = start_s;
  const auto here = gaps_.begin() + static_cast<std::ptrdiff_t>(i);
  const bool left_before = gaps_[i].end_s > gaps_[i].start_s;
  const bool left_behind = behind.end_s > behind.start_s;
  if (left_before && left_behind) {
    gaps_.insert(here + 1, behind);
  } else if (left_behind) {
    *here = behind;
  } else if (!left_before) {
    gaps_.erase(here);
  }
  return start_s;
}

}  // namespace tailrace
