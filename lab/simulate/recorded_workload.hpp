// A recording (write/recording.hpp) as a workload of the simulator.

#pragma once

#include <cstddef>
#include <memory>

#include "simulate/simulate_workload.hpp"
#include "trz/base/status.hpp"
#include "write/recording.hpp"

namespace tailrace {

/// The workload that a recording is: the first iteration teaches the forecast and is not run, each
/// later one is forecast from those before it (obstacles by model/obstacle_forecast, chunks as in
/// the iteration before). Ranks beyond the recorded ones, and iterations, begin again at the first.
/// `settings.noise` comes on top; `settings.costs.write_s`, where given, replaces recorded writes.
/// Not collective. @error invalid_argument
Result<VirtualWorkload> recorded_workload(std::shared_ptr<const Recording> recording,
                                          std::size_t n_ranks, std::size_t ranks_per_node,
                                          std::size_t n_iterations,
                                          const VirtualStorySettings& settings);

}  // namespace tailrace
