// LaneCursor and LaneGaps: where an operation fits on a lane, between its obstacles. The cursor
// only goes forward (operations in a given order), the gaps are all that is still free
// (backfilling).
//
// Both let an operation reach into an obstacle by fit_slack_s: times are sums of doubles, and an
// operation that fits exactly must not be sent behind the obstacle by the last bit.
//
// Source: Jin et al. 2024, 3.3.1. Non-resumable: an operation is never split by an obstacle.

#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <span>
#include <vector>

#include "core/trace.hpp"

namespace tailrace {

constexpr double fit_slack_s = 1e-10;  ///< Rounding of some hundred sums of times below an hour.

/// Places operations one behind the other. Not thread-safe.
struct LaneCursor {
  double free_s = 0;         ///< End of the last operation placed.
  std::size_t obstacle = 0;  ///< The first obstacle that may still lie ahead of free_s.

  /// Place an operation behind all before it, not before ready_s; returns its start.
  /// Cost: O(1) and the obstacles that it passes.
  double place(std::span<const Obstacle> obstacles, double ready_s, double length_s) {
    double start_s = std::max(free_s, ready_s);
    while (obstacle < obstacles.size() &&
           start_s + length_s > obstacles[obstacle].start_s + fit_slack_s) {
      start_s = std::max(start_s, obstacles[obstacle].end_s);
      ++obstacle;
    }
    free_s = start_s + length_s;
    return start_s;
  }
};

/// The free stretches of a lane, in order; the last has no end. Not thread-safe.
class LaneGaps {
 public:
  explicit LaneGaps(std::span<const Obstacle> obstacles);

  /// Place an operation into the earliest gap that takes it, not before ready_s; returns its start.
  /// Cost: O(gaps).
  double place(double ready_s, double length_s);

 private:
  struct Gap {
    double start_s = 0;
    double end_s = std::numeric_limits<double>::infinity();
  };
  std::vector<Gap> gaps_;
};

}  // namespace tailrace
