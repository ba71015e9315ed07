// Simulated run: sums over many ranks, iterations and modes.
//
// Ranks are simulated node by node, on several threads. Only sums and extremes are stored, so that
// memory does not grow with the number of ranks. Every mode runs the same iterations with the same
// noise. The result does not depend on the number of threads.
//
// If `synchronized`, an iteration starts when the slowest rank has finished the one before, as the
// collectives in most applications enforce. Otherwise every rank continues independently.
//
// Costs of a step other than encoding and writing are added to each iteration from closed forms
// (step_costs()).

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

// --- Costs of a step other than encoding and writing: messages between ranks, rank 0's work.
//
// The messages are counted in the product for a step that repeats the last one
// (tests/mpi/api_collectives_test.cpp, docs/architecture.md). Mode sync has a reduction, a gather
// and a broadcast. A deferred step has a gather and a broadcast, plus an exchange of loads if ranks
// of a node write for each other. HDF5's collective writes follow src/H5Dmpio.c (1.14);
// lab/simulate/README.md lists their operations.

/// Parameters of the costs.
struct VirtualStepShape {
  std::uint64_t n_ranks = 1;
  std::uint64_t n_nodes = 1;
  double n_datasets = 1;
  double n_chunks = 1;    ///< Chunks of a rank.
  double raw_bytes = 0;   ///< Bytes of a rank's values.
  double n_writes = 0;    ///< Writes of a rank, each of which claims bytes of the file.
  double write_s = 0;     ///< Sum of a rank's writes.
  bool balances = false;  ///< Ranks of a node exchange their loads.
  bool hold_copy = false;
  /// A thread of rank 0 writes the metadata of deferred steps.
  bool metadata_in_background = true;
};

/// Seconds of one step, by kind. Every rank waits for all of them, except index_s and commit_s if
/// `overlapped`.
struct VirtualStepCosts {
  double agree_s = 0;       ///< Latency of reductions, broadcasts and barriers.
  double gather_s = 0;      ///< Records and numbers sent to rank 0, and their processing there.
  double index_s = 0;       ///< Insertion of chunks into the index.
  double commit_s = 0;      ///< Datasets, attributes, the commit.
  double copy_s = 0;        ///< Copy of the values at the hand-over.
  double claims_s = 0;      ///< Messages that claim bytes of the file.
  bool overlapped = false;  ///< index_s and commit_s overlap with the application's computation.

  /// Seconds by which the costs prolong an iteration of this length.
  double exposed_s(double iteration_s) const;
};

VirtualStepCosts step_costs(VirtualMode mode, const VirtualStepShape& shape,
                            const StepConstants& constants);

struct VirtualRunSettings {
  std::vector<VirtualMode> modes;
  VirtualSettings node;  ///< Its mode is ignored.
  bool synchronized = true;
  std::uint64_t n_threads = 1;     ///< Threads of the simulator.
  std::size_t n_traced_ranks = 0;  ///< Ranks of the first node, traced in the last iteration.
  VirtualMode traced_mode = VirtualMode::in_situ;
  /// Nothing: a step costs only the time of its bytes, as in the paper's simulation. The run sets
  /// ranks, nodes, writes, balancing and hold_copy in the shape.
  std::optional<StepConstants> step_constants;
  VirtualStepShape step_shape;
};

/// One iteration of all ranks in one mode.
struct VirtualIteration {
  double computation_s = 0;    ///< Slowest rank, without output.
  double total_s = 0;          ///< Slowest rank, including the step costs.
  double makespan_s = 0;       ///< End of the last write.
  double exposed_s = 0;        ///< Mean over ranks: output after the application's own part.
  double delay_s = 0;          ///< Mean over ranks: both lanes.
  double back_pressure_s = 0;  ///< Mean over ranks.
  double planned_s = 0;        ///< Longest plan.
  double longest_delay_s = 0;
  std::array<std::size_t, 2> n_delayed{};  ///< Delayed obstacles, indexed by Lane.
  std::size_t n_encoded = 0;
  std::size_t n_written = 0;
  std::size_t n_writes = 0;
  double encode_s = 0;  ///< Mean over ranks, busy time.
  double write_s = 0;
  std::uint64_t written_bytes = 0;
  std::uint64_t peak_bytes = 0;  ///< Maximum over ranks.
  VirtualStepCosts step;         ///< Costs other than encoding and writing.
  double step_s = 0;             ///< Share of `step` that is in total_s.
};

struct VirtualModeResult {
  VirtualMode mode = VirtualMode::in_situ;
  std::vector<VirtualIteration> iterations;
  double run_s = 0;          ///< Sum over iterations.
  double computation_s = 0;  ///< Sum over iterations, without output.

  double overhead() const { return computation_s > 0 ? run_s / computation_s - 1 : 0; }
};

struct VirtualRunResult {
  std::vector<VirtualModeResult> modes;  ///< Results, in the order of the settings.
  std::vector<VirtualEvent> events;      ///< Events of the traced ranks.
};

/// Run all nodes, iterations and modes. Not collective.
/// @error invalid_argument  like simulate_node(); names the node. @error out_of_memory
Result<VirtualRunResult> simulate_run(const VirtualWorkload& workload,
                                      const VirtualRunSettings& settings);

}  // namespace tailrace
