// A simulated run: many ranks, iterations and modes, added up.
//
// Ranks are simulated node by node, on several threads; only sums and extremes are kept, so that
// memory does not grow with the number of ranks. Every mode runs the same iterations with the same
// noise. The result does not depend on the number of threads.
//
// With `synchronized` (as with the collectives that most applications hold) an iteration begins
// when the slowest rank has ended the one before; else every rank goes on by itself.
//
// What a step costs beside its bytes is added to each iteration from closed forms (step_costs()).

#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "model/machine_profile.hpp"
#include "simulate/simulate_node.hpp"
#include "simulate/simulate_workload.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- What a step costs beside its bytes: messages between ranks, and rank 0's work.
//
// As counted in the product (tests/mpi/api_collectives_test.cpp, docs/architecture.md) for a step
// that repeats the last one: in mode sync a reduction, a gather, a broadcast; handed over, gather
// and broadcast, and where a node's ranks write for each other an exchange of loads. Of HDF5's
// collective writes as src/H5Dmpio.c has it (1.14): docs/decisions.md lists what is counted.

/// What the costs depend on.
struct VirtualStepShape {
  std::uint64_t n_ranks = 1;
  std::uint64_t n_nodes = 1;
  double n_datasets = 1;
  double n_chunks = 1;    ///< Of a rank.
  double raw_bytes = 0;   ///< Of a rank's values.
  double n_writes = 0;    ///< Of a rank: each takes its place in the file.
  double write_s = 0;     ///< Of a rank's writes together.
  bool balances = false;  ///< Ranks of a node tell each other their loads.
  bool hold_copy = false;
  bool metadata_beside = true;  ///< A thread of rank 0 makes the metadata of handed over steps.
};

/// Seconds of one step, by what they go to. Every rank waits for all of it but what is beside.
struct VirtualStepCosts {
  double agree_s = 0;   ///< Reductions, broadcasts, barriers: latency.
  double gather_s = 0;  ///< Records and numbers to rank 0, and its taking them in.
  double index_s = 0;   ///< Chunks put into the index.
  double commit_s = 0;  ///< Datasets, attributes, the commit.
  double copy_s = 0;    ///< Values, at the hand-over.
  double claims_s = 0;  ///< Messages for places in the file.
  bool beside = false;  ///< index_s and commit_s pass while the application computes.

  /// What an iteration of this length is longer by.
  double exposed_s(double iteration_s) const;
};

VirtualStepCosts step_costs(VirtualMode mode, const VirtualStepShape& shape,
                            const StepConstants& constants);

struct VirtualRunSettings {
  std::vector<VirtualMode> modes;
  VirtualSettings node;  ///< Its mode is not looked at.
  bool synchronized = true;
  std::uint64_t n_threads = 1;     ///< Of the simulator.
  std::size_t n_traced_ranks = 0;  ///< Of the first node, in the last iteration.
  VirtualMode traced_mode = VirtualMode::in_situ;
  /// Nothing: steps cost their bytes alone, as in the paper's simulation. Of the shape's entries
  /// ranks, nodes, writes and balancing are the run's.
  std::optional<StepConstants> step_constants;
  VirtualStepShape step_shape;
};

/// All ranks' iteration in one mode.
struct VirtualIteration {
  double computation_s = 0;    ///< Of the slowest rank, without output.
  double total_s = 0;          ///< Of the slowest rank, with what the step cost.
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
  VirtualStepCosts step;         ///< Beside its bytes,
  double step_s = 0;             ///< and what of it is in total_s.
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
