// Steps that are handed over, and the idle time in which they are encoded (modes async, in_situ).
//
//   end_step n     complete_flight: the rest of step n-1, its chunk index, its commit
//                  prepare_step:    everything that needs the other ranks, as in mode sync
//                  hand_over:       take the values; lanes start                 (exec/executor)
//   idle, marks    encode while the application's thread is idle                (write_idle)
//   wait, close    complete_flight
//
// Invariant 1: between two calls Tailrace calls no MPI: the lanes' threads encode, claim within the
// node, and write. Only the committing thread of rank 0 calls HDF5 (Output::start_commit_at_root).
// Invariant 2: at most one step is in flight. Its failure is returned on every rank by the call
// that completes it. The step that this call was to begin is dropped, too.

#include <algorithm>
#include <chrono>
#include <limits>
#include <thread>

#include "exec/fine_timers.hpp"
#include "exec/lane_clock.hpp"
#include "write/write.hpp"

namespace tailrace {
namespace {

/// Share of the idle time so far, between two checks for its end.
constexpr double kNapShare = 0.05;

}  // namespace

/// Commit the previous step. Then hand this step over, so that it needs neither the application's
/// values nor MPI. Modes async and in_situ.
Result<StepReport> Writer::hand_over_step() {
  const double start_s = clock_.now_s();
  end_iteration(start_s);
  StepOpening opening(*comm_, record_, last_puts_, numbers_along(false, false),
                      closing_ ? "close" : "end_step");
  if (flight_ == nullptr) opening.numbers().reduce(*comm_);
  Result<std::optional<StepReport>> before = complete_flight(opening.numbers());
  auto step = std::make_unique<Step>();
  Status done = before.status();
  if (done.ok()) {
    const double prepare_s = clock_.now_s();
    done = prepare_step(*step, opening);
    const auto commit_last_step = [&] { output_.let_commit_go(); };
    if (done.ok()) step->executor->hand_over(options_.hold_promise, commit_last_step);
    step->report.handover_s = clock_.now_s() - prepare_s;
  }
  output_.let_commit_go();
  const double end_s = clock_.now_s();
  step->report.step_s = end_s - start_s;
  const double own_step_s = step->report.step_s;
  if (done.ok()) {
    step->take(record_);
    flight_ = std::move(step);
    ++n_handed_over_;
  }
  forget_step(!done.ok());
  idle_.begin_iteration(end_s);
  if (options_.trace) {
    trace_.add({TraceEvent::Kind::end_step, comm_->rank(), 0, -1, -1, start_s, end_s, 0, 0});
    if (flight_ != nullptr) trace_plan_of(*flight_, end_s);
  }
  if (!done.ok()) return done;
  StepReport report;
  report.completed = before->has_value();
  report.step_s = own_step_s;
  if (report.completed) report = std::move(**before);
  return report;
}

/// End the application's iteration: its use of the lanes is input of the next forecast.
void Writer::end_iteration(double now_s) {
  const double began_s = idle_.iteration_start_s();
  RecordedIteration seen = idle_.end_iteration(now_s);
  for (const Lane lane : {Lane::main, Lane::io}) {
    for (const Obstacle& obstacle : seen.obstacles.of(lane)) {
      if (!options_.trace) break;
      trace_.add({TraceEvent::Kind::application, comm_->rank(),
                  lane == Lane::main ? 0 : kIoLaneNumber, -1, -1, began_s + obstacle.start_s,
                  began_s + obstacle.end_s, 0, 0});
    }
  }
  if (flight_ != nullptr) flight_->iteration = std::move(seen);
}

/// Store a finished step's events for the trace and the recording.
void Writer::keep_events(Step& step, const std::vector<WrittenChunk>& written) {
  const std::vector<TraceEvent> events = step.trace.take();
  if (options_.trace) {
    for (const TraceEvent& event : events) trace_.add(event);
  }
  if (options_.record_path.empty() || !(step.iteration.iteration_s > 0)) return;
  recorder_.add(step.iteration, idle_.iteration_start_s(), *step.ownership, step.plan, written,
                events);
}

/// Commit the handed-over step, if there is one.
/// @param along  numbers of the ranks that are reduced with its own.
/// @returns its report.
Result<std::optional<StepReport>> Writer::complete_flight(const RankNumbers& along) {
  if (flight_ == nullptr) return std::optional<StepReport>();
  const std::unique_ptr<Step> step = std::move(flight_);
  const Status done = complete_step(*step, along);
  if (!done.ok()) return done;
  return std::optional<StepReport>(std::move(step->report));
}

Result<std::optional<StepReport>> Writer::complete_last_step() {
  TAILRACE_TRY(usable());
  try {
    // close() has set the numbers that it asks for.
    StepOpening opening(*comm_, record_, last_puts_, numbers_along(any_open_ != 0, any_put_ != 0),
                        closing_ ? "close" : "wait");
    const bool communicates = flight_ != nullptr;
    Result<std::optional<StepReport>> report = complete_flight(opening.numbers());
    if (!report.ok()) forget_step(true);
    if (communicates && report.ok() && opening.calls_differ()) return go_out_of_step(opening);
    // The commit of the step before: its failure is more serious.
    TAILRACE_TRY(output_.finish_commit());
    return report;
  } catch (...) {
    forget_after_throw();
    throw;
  }
}

void Writer::mark(Lane lane, bool begins) {
  if (options_.mode != StepMode::in_situ) return;
  idle_.mark(lane, begins, clock_.now_s());
  if (flight_ == nullptr) return;
  flight_->executor->attend();
  if (lane == Lane::io && !begins) flight_->executor->look_again();
}

/// True if the step in flight may still need the application's thread before it is completed.
bool Writer::needs_main_lane() {
  if (flight_ == nullptr) return false;
  if (output_.tail().needs_service()) return true;
  return options_.mode == StepMode::in_situ && flight_->executor->waits_for_encoding();
}

/// Encode while the application is idle. If a chunk is being encoded when the idle time ends, the
/// delay is counted: exactly if `seconds` set the end, as an upper bound if `done` reported it.
void Writer::idle(double seconds, const std::function<bool()>& done,
                  const std::function<void()>& wait) {
  const double start_s = clock_.now_s();
  const double end_s = start_s + seconds;
  const FineTimers fine;
  idle_.enter(start_s);
  bool over = false;
  bool waited = false;
  while (!over) {
    const double now_s = clock_.now_s();
    if ((done && done()) || now_s >= end_s) break;
    if (flight_ != nullptr) flight_->executor->attend();
    const bool encodes = options_.mode == StepMode::in_situ && flight_ != nullptr;
    if (!done && (!encodes || !flight_->executor->waits_for_encoding())) break;
    if (encodes) {
      LaneOutlook outlook = idle_.outlook(Lane::main, now_s);
      if (!done) outlook = {0, false, end_s - now_s, false};
      if (flight_->executor->encode_in_idle_time(outlook)) {
        const double encoded_s = clock_.now_s();
        // a `done` that has returned true is not called again
        over = done ? done() : encoded_s >= end_s;
        if (over) flight_->count_delay(done ? encoded_s - now_s : encoded_s - end_s);
        continue;
      }
      if (!done) break;  // no remaining chunk fits
    }
    const bool needed = needs_main_lane();
    if (wait && !needed && !std::exchange(waited, true)) {
      wait();
      continue;
    }
    // Check rarely in a long wait and often in a short one: its end is noticed at most 5 % late.
    const std::chrono::duration<double> nap(
        std::clamp(kNapShare * (now_s - start_s), 10e-6, needed ? 200e-6 : 1e-3));
    std::this_thread::sleep_for(nap);
  }
  idle_.leave(clock_.now_s());
}

}  // namespace tailrace
