// What a lane has room for: LaneCursor and LaneGaps while a plan is made, LaneRule while the
// iteration runs. The executor on the real clock and the simulator on its virtual one ask the same
// rule.
//
// A plan says in which order operations go; the real iteration is never quite the forecast one. So
// a lane starts, of the operations that are ready, the first in the plan's order that ends before
// the lane's next obstacle (backfilling, Jin et al. 2024, 3.3.1); if the obstacle is overdue, the
// shortest. So an obstacle is delayed by at most one operation, and that only if the forecast of
// the obstacle or of the operation was wrong.

#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "core/trace.hpp"

namespace tailrace {

// --- Where an operation fits on a lane, between its obstacles. The cursor only goes forward
// (operations in a given order), the gaps are all that is still free (backfilling).
//
// Both let an operation reach into an obstacle by fit_slack_s: times are sums of doubles, and an
// operation that fits exactly must not be sent behind the obstacle by the last bit.
//
// Source: Jin et al. 2024, 3.3.1. Non-resumable: an operation is never split by an obstacle.

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

/// How far an operation may reach into an obstacle by rounding alone: of check_plan's order.
inline constexpr double lane_rounding_s = 1e-9;
/// How late an obstacle may begin without being called overdue, whatever the margin: marks are a
/// little late even where nothing has changed.
inline constexpr double lane_grace_s = 1e-4;

/// How much of the main lane is kept free before and behind the forecast start of an obstacle, in
/// standard deviations of such starts. Simulated (docs/simulate.md): 1 lets more obstacles be
/// delayed, 3 leaves too little.
inline constexpr double lane_margin_deviations = 2;

/// How long a lane stays free, as far as is known.
struct LaneOutlook {
  double now_s = 0;      ///< Since the iteration began.
  bool blocked = false;  ///< The application is using the lane.
  double free_until_s =
      0;                 ///< Start of the next obstacle, less the margin; infinity: none to come.
  bool overdue = false;  ///< The next obstacle should have begun by now.
  /// When the next obstacle becomes overdue, if it does not begin before: the time to ask again
  /// where nothing could be started; infinity: only a mark or another operation changes anything.
  double overdue_from_s = 0;
};

/// The outlook at `now_s`. `n_begun` obstacles of the forecast have begun already (as marked);
/// `blocked`: one is under way. The next one is the first of the forecast that has not begun. It
/// is expected within `margin_s` of its forecast start: the lane is free until the margin begins,
/// and the obstacle is overdue when the margin (lane_grace_s at least) has passed. In between
/// nothing is started. Not collective. Thread-safe. Cost: O(1).
LaneOutlook lane_outlook(std::span<const Obstacle> forecast, std::size_t n_begun, bool blocked,
                         double now_s, double margin_s = 0);

/// The main lane's margin: `deviations` times the obstacles' spread, but never more than a chunk's
/// encoding takes on average, since that is about the most an obstacle can be delayed by. The I/O
/// lane needs none where a write in the way delays nobody and only shares the network. Pure.
double lane_margin_s(double deviations, double spread_s, double mean_encode_s);

/// The outlook of a lane that nobody else uses. Not collective. Thread-safe.
LaneOutlook unlimited_outlook();

/// Which of the ready operations to start now. @param lengths_s  of the ready operations, in the
/// plan's order; one that is no number counts as infinitely long. @returns an index into it;
/// nothing: wait (blocked, or none fits). Not collective. Thread-safe. Cost: O(ready operations).
std::optional<std::size_t> pick_operation(std::span<const double> lengths_s,
                                          const LaneOutlook& outlook);

}  // namespace tailrace
