// Rules for free time on a lane: LaneCursor and LaneGaps for planning, pick_operation() while the
// iteration runs. The executor with its real clock and the simulator with its virtual one use the
// same rule.
//
// A plan defines the order of operations, but the real iteration always deviates from the forecast.
// So a lane starts the first ready operation, in the plan's order, that ends before the lane's next
// obstacle (backfilling, Jin et al. 2024, 3.3.1). If the obstacle is overdue, it starts the
// shortest. So an obstacle is delayed by at most one operation, and only if the forecast of the
// obstacle or of the operation was wrong.

#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/trace.hpp"

namespace tailrace {

// --- Placement of operations on a lane, between its obstacles. The cursor only moves forward
// (operations in a given order); the gaps are all the free time (backfilling).
//
// Both let an operation extend into an obstacle by kFitSlackS. Times are sums of doubles, and the
// last bit must not move an operation that fits exactly to after the obstacle.
//
// Source: Jin et al. 2024, 3.3.1. Non-resumable: an operation is never split by an obstacle.

constexpr double kFitSlackS = 1e-10;  ///< Rounding of several hundred sums of times below an hour.

/// Places operations one after the other. Not thread-safe.
struct LaneCursor {
  double free_s = 0;         ///< End of the last operation placed.
  std::size_t obstacle = 0;  ///< Index of the first obstacle that was not passed.

  /// Place an operation after all previous ones, not before ready_s; returns its start.
  /// Cost: O(1 + obstacles passed).
  double place(std::span<const Obstacle> obstacles, double ready_s, double length_s) {
    double start_s = std::max(free_s, ready_s);
    while (obstacle < obstacles.size() &&
           start_s + length_s > obstacles[obstacle].start_s + kFitSlackS) {
      start_s = std::max(start_s, obstacles[obstacle].end_s);
      ++obstacle;
    }
    free_s = start_s + length_s;
    return start_s;
  }
};

/// Free intervals of a lane, in order; the last has no end. Not thread-safe.
class LaneGaps {
 public:
  explicit LaneGaps(std::span<const Obstacle> obstacles);

  /// Place an operation into the earliest gap that fits it, not before ready_s; returns its start.
  /// Cost: O(gaps).
  double place(double ready_s, double length_s);

 private:
  struct Gap {
    double start_s = 0;
    double end_s = std::numeric_limits<double>::infinity();
  };
  std::vector<Gap> gaps_;
};

/// Tolerated overlap of an operation and an obstacle due to rounding; of check_plan()'s order.
inline constexpr double kLaneRoundingS = 1e-9;
/// Minimum delay after which an obstacle is overdue, whatever the margin: marks arrive slightly
/// late even if nothing has changed.
inline constexpr double kLaneGraceS = 1e-4;

/// Margin of the main lane before and after the forecast start of an obstacle, in standard
/// deviations of such starts. Simulated (docs/decisions.md): 1 delays more obstacles, 3 leaves too
/// little free time.
inline constexpr double kLaneMarginDeviations = 2;

/// Expected free time of a lane.
struct LaneOutlook {
  double now_s = 0;         ///< Time since the start of the iteration.
  bool blocked = false;     ///< The application is using the lane.
  double free_until_s = 0;  ///< Start of the next obstacle, less the margin; infinity: none.
  bool overdue = false;     ///< The next obstacle is late by more than the margin.
  /// Time at which the next obstacle becomes overdue, if it has not begun. If nothing could be
  /// started, ask again at this time. Infinity: only a mark or another operation changes anything.
  double overdue_from_s = 0;
};

/// Compute the outlook at `now_s`. `n_begun` obstacles of the forecast have begun already (as
/// marked); `blocked` is true during an obstacle. The next obstacle is the first of the forecast
/// that has not begun. It is expected within `margin_s` of its forecast start. The lane is free
/// until the margin begins, and the obstacle is overdue when the margin (at least kLaneGraceS) has
/// passed. In between, no operation starts. Not collective. Thread-safe. Cost: O(1).
LaneOutlook lane_outlook(std::span<const Obstacle> forecast, std::size_t n_begun, bool blocked,
                         double now_s, double margin_s = 0);

/// Margin of the main lane: `deviations` times the obstacles' spread, but at most the average
/// encode time of a chunk, which is about the longest possible delay of an obstacle. The I/O lane
/// needs no margin if an ongoing write delays no rank and only shares the network. Pure.
double lane_margin_s(double deviations, double spread_s, double mean_encode_s);

/// Outlook of a lane without any obstacle. Not collective. Thread-safe.
LaneOutlook unlimited_outlook();

/// Select the ready operation to start now. @param lengths_s  lengths of the ready operations, in
/// the plan's order; NaN counts as infinite. @returns an index into it; nothing: wait (blocked, or
/// none fits). Not collective. Thread-safe. Cost: O(ready operations).
std::optional<std::size_t> pick_operation(std::span<const double> lengths_s,
                                          const LaneOutlook& outlook);

}  // namespace tailrace
