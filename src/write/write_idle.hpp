// IdleTime: when the application needs its lanes, and the plan around it. Mode in_situ.
//
// An iteration lasts from one end_step to the next. The main lane is ours only while the
// application says that it is idle; all other time of it is an obstacle, whether marked or not. The
// I/O lane is ours but for what is marked. What was seen makes the forecast of the next iteration,
// the forecast makes the plan, and the lane rule holds both against what really happens. Source:
// Jin et al. 2024, 3.1; the rule at run time is ours (schedule/lane_rule.hpp).

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

class IdleTime {
 public:
  /// The iteration ends, with the call of end_step, and the next begins, with its return. Main
  /// thread; seconds of the writer's clock, as everywhere here.
  /// @returns what the iteration was like; length 0 if none was under way.
  RecordedIteration end_iteration(double now_s);
  void begin_iteration(double now_s);
  double iteration_start_s() const { return start_s_; }
  /// The application marks a lane. Main thread.
  void mark(Lane lane, bool begins, double now_s);
  /// The application's thread becomes idle, and busy again. Main thread.
  void enter(double now_s);
  void leave(double now_s);

  /// How long a lane stays free, in seconds of the writer's clock. Between two iterations the
  /// application waits in end_step: nothing is in the way then, whatever it has marked.
  /// Thread-safe.
  LaneOutlook outlook(Lane lane, double now_s) const;

  /// Plan the iteration that is about to begin: orders, timeline. `n_threads` are our own; with
  /// any, the main lane's obstacles do not matter. Not collective. Cost: a hundredth of what
  /// the step should take, 5 ms at most.
  /// @error invalid_argument  no scheduler of this name.
  Status plan(const std::string& scheduler, std::uint64_t n_threads, StepPlan& step);

 private:
  ObstacleLog log_;
  ObstacleForecast forecast_;
  double mean_encode_s_ = 0;  ///< Of a chunk of the step that was planned last.

  // The I/O lane asks for its outlook while the main thread begins the next iteration: the mutex
  // guards what follows, which the main thread alone changes, and that log_ is of the same
  // iteration.
  mutable std::mutex mutex_;
  LaneObstacles next_;  ///< The forecast of the iteration under way; constant within it.
  double main_margin_s_ = 0;
  double start_s_ = 0;  ///< Of the iteration under way.
  bool running_ = false;
};

/// Learn how fast this rank encodes and writes from what a step has shown. Not collective.
/// @param write_s_per_byte  of earlier steps, 0: none; brought up to date.
void learn_speeds(std::span<FieldState* const> active, const Ownership& ownership,
                  const StepPlan& plan, const ExecutorReport& done, double& write_s_per_byte);

}  // namespace tailrace
