// What `tailrace simulate` was asked, understood: the workload and how to run it.

#pragma once

#include <memory>
#include <string>

#include "model/machine_profile.hpp"
#include "simulate/simulate_recording.hpp"
#include "simulate/simulate_run.hpp"
#include "simulate/simulate_workload.hpp"
#include "simulate_options.hpp"

namespace tailrace::cli {

/// A run, ready to be varied: figures change one entry and run it again.
struct SimulatePlan {
  VirtualApplication application;
  std::shared_ptr<const Recording> recording;  ///< Instead of the application; may be null.
  std::size_t n_ranks = 64;
  std::size_t ranks_per_node = 4;
  std::size_t n_iterations = 10;
  VirtualStorySettings story;  ///< Its write costs are those of storage_of().
  VirtualRunSettings run;
  bool scheduler_is_auto = true;

  MachineProfile profile;
  std::string profile_name;
  double bandwidth = 0;          ///< Bytes per second of a rank; 0: as the profile says.
  double total_bandwidth = 0;    ///< Of all ranks; 0: no limit.
  bool recorded_writes = false;  ///< Writes take as long as they were recorded.
  std::string encode_text;       ///< "trz of the built-in profile", "300 MB/s".
};

/// Files are read, too. @error invalid_argument, not_found, corrupt  name the option or file.
Result<SimulatePlan> understand_simulate(const SimulateArguments& arguments);

/// Fill in what depends on the number of ranks (storage, the scheduler), and run.
Result<VirtualRunResult> run_plan(SimulatePlan plan);

/// The scheduler that run_plan() takes.
Scheduler scheduler_of(const SimulatePlan& plan);
/// "25 MB/s a rank", "rooflines of machine.json, 100 MB/s a rank for writes of 16 MiB".
std::string storage_text(const SimulatePlan& plan);
/// "9 fields of 64 MiB a rank in chunks of 8 MiB, ..."
std::string workload_text(const SimulatePlan& plan);

}  // namespace tailrace::cli
