// The phases of an iteration: each is marked for Tailrace and timed for the report.

#include "common/lanes.hpp"

#include <mpi.h>

namespace app {
namespace {

/// Runs `work` and adds its seconds to `sum_s`.
template <class Work>
void timed(double& sum_s, Work&& work) {
  const double start_s = MPI_Wtime();
  work();
  sum_s += MPI_Wtime() - start_s;
}

}  // namespace

void Lanes::begin_iteration(int step) {
  if (!opened_) output_.open();
  opened_ = true;
  now_ = IterationTimes{};
  now_.step = step;
  started_s_ = MPI_Wtime();
}

void Lanes::end_iteration() {
  now_.total_s = MPI_Wtime() - started_s_;
  iterations_.push_back(now_);
}

void Lanes::host(const std::function<void()>& work) {
  if (!opened_) return work();
  output_.compute_begin();
  timed(now_.host_s, work);
  output_.compute_end();
}

void Lanes::exchange(const std::function<void()>& work) {
  if (!opened_) return work();
  output_.compute_begin();
  output_.background_begin();
  timed(now_.exchange_s, work);
  output_.background_end();
  output_.compute_end();
}

void Lanes::offload(const std::function<void()>& kernel) {
  timed(now_.idle_s, [&] {
    device_.launch(kernel);
    if (opened_) {
      output_.idle_until([this] { return device_.done(); }, [this] { device_.wait(); });
    }
    device_.wait();  // Returns immediately, or rethrows the kernel's exception.
  });
}

void Lanes::output(int step, double time, const std::function<void()>& derive) {
  output_.begin_step(step, time);
  output_.compute_begin();
  timed(now_.derive_s, derive);
  output_.compute_end();
  timed(now_.output_s, [&] { output_.end_step(); });
}

}  // namespace app
