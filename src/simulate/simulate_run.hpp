// A simulated run: many ranks, iterations and modes, added up.
//
// Ranks are simulated node by node, on several threads; only sums and extremes are kept, so that
// memory does not grow with the number of ranks. Every mode runs the same iterations with the same
// noise. The result does not depend on the number of threads.
//
// With `synchronized` (as with the collectives that most applications hold) an iteration begins
// when the slowest rank has ended the one before; else every rank goes on by itself.

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "core/status.hpp"
#include "simulate/simulate_node.hpp"
#include "simulate/simulate_workload.hpp"

namespace tailrace {

struct VirtualRunSettings {
  std::vector<VirtualMode> modes;
  VirtualSettings node;  ///< Its mode is not looked at.
  bool synchronized = true;
  std::uint64_t n_threads = 1;     ///< Of the simulator.
  std::size_t n_traced_ranks = 0;  ///< Of the first node, in the last iteration.
  VirtualMode traced_mode = VirtualMode::in_situ;
};

/// All ranks' iteration in one mode.
struct VirtualIteration {
  double computation_s = 0;    ///< Of the slowest rank, without output.
  double total_s = 0;          ///< Of the slowest rank.
  double makespan_s = 0;       ///< End of the last write.
  double exposed_s = 0;        ///< Mean of ranks: output after the application's own part.
  double delay_s = 0;          ///< Mean of ranks: both lanes.
  double back_pressure_s = 0;  ///< Mean of ranks.
  double planned_s = 0;        ///< Longest plan.
  double longest_delay_s = 0;
  std::array<std::size_t, 2> n_delayed{};  ///< Obstacles, by Lane.
  std::size_t n_encoded = 0;
  std::size_t n_written = 0;
  std::size_t n_writes = 0;
  double encode_s = 0;  ///< Mean of ranks, busy.
  double write_s = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t peak_bytes = 0;  ///< Of any rank.
};

struct VirtualModeResult {
  VirtualMode mode = VirtualMode::in_situ;
  std::vector<VirtualIteration> iterations;
  double run_s = 0;          ///< All iterations.
  double computation_s = 0;  ///< Likewise, without output.

  double overhead() const { return computation_s > 0 ? run_s / computation_s - 1 : 0; }
};

struct VirtualRunResult {
  std::vector<VirtualModeResult> modes;  ///< As in the settings.
  std::vector<VirtualEvent> events;      ///< Of the traced ranks.
};

/// Run it all. Not collective.
/// @error invalid_argument  as of simulate_node(); names the node. @error out_of_memory
Result<VirtualRunResult> simulate_run(const VirtualWorkload& workload,
                                      const VirtualRunSettings& settings);

}  // namespace tailrace
