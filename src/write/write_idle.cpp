// Conversion of marks to obstacles, and of obstacles to a plan.

#include "write/write_idle.hpp"

#include <algorithm>
#include <utility>
#include <vector>

#include "schedule/flow_shop.hpp"

namespace tailrace {
namespace {

/// Largest share of the planned time that planning may take. Placing one operation takes 10 ns.
constexpr double kPlanningShare = 0.01;
constexpr double kPlacingS = 10e-9;
/// Largest numbers of chunks for the paper's greedy schedulers. Their insertion takes O(n^2) and
/// O(n^3); beyond these numbers a plan would cost more than it gains, and the backfilling scheduler
/// is used.
constexpr std::size_t kOneListMost = 300;
constexpr std::size_t kTwoListsMost = 60;
/// Weight of the last step in the moving mean of speeds.
constexpr double kNewest = 0.5;
/// Measured speeds are clamped to this factor around the forecast: one stall is not a speed.
constexpr double kCorrectionMost = 20;

Scheduler affordable(Scheduler scheduler, std::size_t n_jobs) {
  const bool too_many = (scheduler == Scheduler::one_list_greedy && n_jobs > kOneListMost) ||
                        (scheduler == Scheduler::two_lists_greedy && n_jobs > kTwoListsMost);
  return too_many ? Scheduler::ext_johnson_bf : scheduler;
}

double blend(double old_value, double measured) {
  return old_value > 0 ? (1 - kNewest) * old_value + kNewest * measured : measured;
}

}  // namespace

RecordedIteration IdleTime::end_iteration(double now_s) {
  const std::scoped_lock lock(mutex_);
  if (!running_) return {};
  log_.end(Lane::main, now_s - start_s_);  // end_step itself is no obstacle
  RecordedIteration seen = log_.end_iteration(now_s - start_s_);
  forecast_.add_iteration(seen.obstacles, seen.iteration_s);
  running_ = false;
  return seen;
}

void IdleTime::begin_iteration(double now_s) {
  const std::scoped_lock lock(mutex_);
  next_ = forecast_.next();
  main_margin_s_ =
      lane_margin_s(kLaneMarginDeviations, forecast_.spread_s(Lane::main), mean_encode_s_);
  start_s_ = now_s;
  running_ = true;
  log_.begin(Lane::main, 0);
}

void IdleTime::mark(Lane lane, bool begins, double now_s) {
  if (!running_) return;
  // The main lane is an obstacle whenever it is not idle, so its marks add nothing.
  if (lane == Lane::main) return;
  if (begins) {
    log_.begin(lane, now_s - start_s_);
  } else {
    log_.end(lane, now_s - start_s_);
  }
}

void IdleTime::enter(double now_s) {
  if (running_) log_.end(Lane::main, now_s - start_s_);
}

void IdleTime::leave(double now_s) {
  if (running_) log_.begin(Lane::main, now_s - start_s_);
}

LaneOutlook IdleTime::outlook(Lane lane, double now_s) const {
  const std::scoped_lock lock(mutex_);
  if (!running_) return unlimited_outlook();
  const LaneState state = log_.state(lane);
  return lane_outlook(next_.of(lane), state.n_begun, state.blocked, now_s - start_s_,
                      lane == Lane::main ? main_margin_s_ : 0);
}

Status IdleTime::plan(const std::string& scheduler, std::uint64_t n_threads, StepPlan& step) {
  const Result<Scheduler> chosen = parse_scheduler(scheduler);
  if (!chosen.ok()) return chosen.status();
  FlowShop shop;
  shop.obstacles = forecast_.next();
  shop.iteration_s = forecast_.iteration_s();
  // Encode threads have their own cores: together they are one lane that the application never
  // uses.
  if (n_threads > 0) shop.obstacles.main.clear();
  const auto speed = static_cast<double>(std::max<std::uint64_t>(n_threads, 1));
  double encode_s = 0;
  double write_s = 0;
  for (const JobForecast& job : step.forecasts) {
    shop.jobs.push_back({std::max(job.encode_s, 0.0) / speed, std::max(job.write_s, 0.0)});
    encode_s += shop.jobs.back().encode_s;
    write_s += shop.jobs.back().write_s;
  }
  TAILRACE_TRY(check_flow_shop(shop));
  mean_encode_s_ = shop.jobs.empty() ? 0 : encode_s / static_cast<double>(shop.jobs.size());
  SearchBudget budget;
  const double n_affordable = kPlanningShare / kPlacingS * (encode_s + write_s);
  if (n_affordable < static_cast<double>(budget.n_evaluated_operations)) {
    budget.n_evaluated_operations = static_cast<std::uint64_t>(n_affordable);
  }
  FlowShopPlan plan = schedule_flow_shop(shop, affordable(*chosen, shop.jobs.size()), budget);
  step.timeline.clear();
  for (const std::size_t job : plan.encode_order) {
    step.timeline.push_back(
        {job, 0, plan.encode_start_s[job], plan.encode_start_s[job] + shop.jobs[job].encode_s,
         plan.write_start_s[job], plan.write_start_s[job] + shop.jobs[job].write_s});
  }
  step.order = std::move(plan.encode_order);
  step.write_order = std::move(plan.write_order);
  return Status();
}

void learn_speeds(std::span<FieldState* const> active, const Ownership& ownership,
                  const StepPlan& plan, const ExecutorReport& done, double& write_s_per_byte) {
  double encoded_bytes = 0;
  std::vector<double> forecast_s(active.size());
  for (std::size_t j = 0; j < plan.forecasts.size(); ++j) {
    forecast_s[ownership.jobs[j].field] += plan.forecasts[j].encode_s;
  }
  for (std::size_t f = 0; f < active.size(); ++f) {
    const FieldTally& tally = done.tallies[f];
    encoded_bytes += static_cast<double>(tally.encoded_bytes);
    const double measured_s = tally.encode_s + tally.verify_s;
    if (!(forecast_s[f] > 0) || !(measured_s > 0)) continue;
    double& correction = active[f]->learned.encode_correction;
    const double seen = correction * measured_s / forecast_s[f];
    correction = blend(correction, std::clamp(seen, 1 / kCorrectionMost, kCorrectionMost));
  }
  // Use only the rank's own bytes: with writers=node other ranks write them, and it may write
  // theirs.
  const double own_write_s = done.write_s - done.foreign_write_s;
  if (encoded_bytes > 0 && own_write_s > 0) {
    write_s_per_byte = blend(write_s_per_byte, own_write_s / encoded_bytes);
  }
}

}  // namespace tailrace
