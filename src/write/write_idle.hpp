// IdleTime: forecasts when the application needs its lanes, and plans around it. Mode in_situ.
//
// An iteration lasts from one end_step to the next. Tailrace uses the main lane only while the
// application reports that it is idle; all other time on it is an obstacle, marked or not. Tailrace
// uses the I/O lane except where the application marks it. Observed obstacles make the forecast of
// the next iteration, and the forecast makes the plan. The lane rule checks both against what
// really happens. Source: Jin et al. 2024, 3.1; the rule at run time is our addition
// (schedule/lane_rule.hpp).

#pragma once

#include <mutex>
#include <span>
#include <string>

#include "exec/lane_clock.hpp"
#include "model/obstacle_forecast.hpp"
#include "schedule/lane_rule.hpp"
#include "trz/base/status.hpp"
#include "write/write_plan.hpp"

namespace tailrace {

/// Records, forecasts and plans the iterations of one rank.
class IdleTime {
 public:
  /// End the iteration at the call of end_step, and begin the next at its return. Main thread. All
  /// times in this class are seconds of the writer's clock.
  /// @returns the record of the iteration; length 0 if none was running.
  RecordedIteration end_iteration(double now_s);
  void begin_iteration(double now_s);
  double iteration_start_s() const { return start_s_; }
  /// Record the application's mark on a lane. Main thread.
  void mark(Lane lane, bool begins, double now_s);
  /// Record that the application's thread becomes idle, or busy again. Main thread.
  void enter(double now_s);
  void leave(double now_s);

  /// Return how long a lane stays free, in seconds of the writer's clock. Between two iterations
  /// the application waits in end_step, so its marks do not count. Thread-safe.
  LaneOutlook outlook(Lane lane, double now_s) const;

  /// Plan the iteration that is about to begin: orders and timeline. `n_threads` are Tailrace's
  /// threads; if there are any, the main lane's obstacles do not count. Not collective. Cost: a
  /// hundredth of the expected time of the step, at most 5 ms.
  /// @error invalid_argument  unknown scheduler.
  Status plan(const std::string& scheduler, std::uint64_t n_threads, StepPlan& step);

 private:
  ObstacleLog log_;
  ObstacleForecast forecast_;
  double mean_encode_s_ = 0;  ///< Mean over the chunks of the last planned step.

  // Guards the members below, which only the main thread changes, and keeps log_ in the same
  // iteration as them. The I/O lane may ask for its outlook while the main thread begins the next
  // iteration.
  mutable std::mutex mutex_;
  LaneObstacles next_;  ///< Forecast of the current iteration; constant within it.
  double main_margin_s_ = 0;
  double start_s_ = 0;  ///< Start of the current iteration.
  bool running_ = false;
};

/// Learn this rank's speeds of encoding and writing from a step. Not collective.
/// @param write_s_per_byte  value of earlier steps, 0: none; updated.
void learn_speeds(std::span<FieldState* const> active, const Ownership& ownership,
                  const StepPlan& plan, const ExecutorReport& done, double& write_s_per_byte);

}  // namespace tailrace
