// Workload of the simulator that replays a recording (write/recording.hpp).

#pragma once

#include <cstddef>
#include <memory>

#include "simulate/simulate_workload.hpp"
#include "trz/base/status.hpp"
#include "write/recording.hpp"

namespace tailrace {

/// Make a workload from a recording. The first iteration trains the forecast and is not run; each
/// later one is forecast from those before it. Obstacles are forecast by model/obstacle_forecast,
/// chunks as in the iteration before. Ranks beyond the recorded ones repeat the recorded ranks;
/// iterations repeat from the second one. `settings.noise` is applied to the recorded times;
/// `settings.costs.write_s`, if given, replaces recorded writes. Not collective. @error
/// invalid_argument
Result<VirtualWorkload> recorded_workload(std::shared_ptr<const Recording> recording,
                                          std::size_t n_ranks, std::size_t ranks_per_node,
                                          std::size_t n_iterations,
                                          const VirtualStorySettings& settings);

}  // namespace tailrace
