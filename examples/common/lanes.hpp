// Lanes: runs the phases of an application's iterations. It sets the marks around which Tailrace
// plans, donates idle time to Tailrace, and measures the reported times.
//
//   lanes.begin_iteration(step);
//   lanes.host([&] { sort_particles(); });         main lane busy
//   lanes.offload([&] { push_particles(); });      device busy, main lane idle
//   lanes.exchange([&] { exchange_halos(); });     both lanes busy: MPI is funneled through main
//   if (output.wants(step)) lanes.output(step, time, [&] { output.put(...); });
//   lanes.end_iteration();
//
// Phases before the first iteration (initial conditions) also run, but are not marked or timed.

#pragma once

#include <functional>
#include <vector>

#include "common/device.hpp"
#include "common/step_output.hpp"

namespace app {

/// Wall-clock seconds of this rank in one iteration, by kind of phase.
struct IterationTimes {
  int step = 0;
  double total_s = 0;
  double host_s = 0;      ///< The main thread computed.
  double idle_s = 0;      ///< The device computed; the main thread was idle or worked for Tailrace.
  double exchange_s = 0;  ///< MPI, including waits for other ranks.
  double derive_s = 0;    ///< Computing the output's fields from the state.
  double output_s = 0;    ///< Calls of the output: writing, or handing over.
};

class Lanes {
 public:
  Lanes(StepOutput& output, Device& device) : output_(output), device_(device) {}

  /// Begins an iteration. Collective the first time, because it opens the output.
  void begin_iteration(int step);
  void end_iteration();
  void host(const std::function<void()>& work);
  void exchange(const std::function<void()>& work);
  void offload(const std::function<void()>& kernel);
  /// A step of output: `derive` puts the fields (main lane busy), then the step is ended.
  /// Collective.
  void output(int step, double time, const std::function<void()>& derive);

  const std::vector<IterationTimes>& iterations() const { return iterations_; }

 private:
  StepOutput& output_;
  Device& device_;
  IterationTimes now_;
  double started_s_ = 0;
  bool opened_ = false;
  std::vector<IterationTimes> iterations_;
};

}  // namespace app
