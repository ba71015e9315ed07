// Lanes: an application runs the phases of its iterations through this, and all else follows:
// the marks that Tailrace plans around, the idle time that it may use, and the times we report.
//
//   lanes.begin_iteration(step);
//   lanes.host([&] { sort_particles(); });         main lane busy
//   lanes.offload([&] { push_particles(); });      device busy, main lane idle
//   lanes.exchange([&] { exchange_halos(); });     both lanes busy: MPI is funneled through main
//   if (output.wants(step)) lanes.output(step, time, [&] { output.put(...); });
//   lanes.end_iteration();
//
// Phases before the first iteration (initial conditions) run, too, but are not marked or timed.

#pragma once

#include <functional>
#include <vector>

#include "common/device.hpp"
#include "common/step_output.hpp"

namespace app {

/// Wall-clock seconds of this rank in one iteration, and where they went.
struct IterationTimes {
  int step = 0;
  double total_s = 0;
  double host_s = 0;      ///< The main thread computed.
  double idle_s = 0;      ///< The device computed; the main thread was idle, or Tailrace's.
  double exchange_s = 0;  ///< MPI, and waiting in it for other ranks.
  double derive_s = 0;    ///< Turning the state into the fields of the output.
  double output_s = 0;    ///< In the output: writing, or handing over.
};

class Lanes {
 public:
  Lanes(StepOutput& output, Device& device) : output_(output), device_(device) {}

  /// Collective the first time: it opens the output.
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
