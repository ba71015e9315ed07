// run_application: the common frame of every application: options, MPI, output, device, report.
//
//   int main(int argc, char** argv) {
//     Settings settings;
//     app::Arguments arguments("cosmo", "Gravity in an expanding box.");
//     arguments.add("--grid", settings.grid, "cells per edge");
//     app::CommonOptions common("cosmo.h5");
//     return app::run_application(argc, argv, arguments, common,
//                                 [&](app::Run& run) { simulate(settings, run); });
//   }
//
// The exit status is 0; 1 if one of the application's checks failed or an error ended it; 2 if the
// command line is wrong or requests something that this machine lacks.

#pragma once

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "common/arguments.hpp"
#include "common/device.hpp"
#include "common/lanes.hpp"
#include "common/step_output.hpp"

namespace app {

struct CommonOptions {
  explicit CommonOptions(std::string default_path) { output.path = std::move(default_path); }
  OutputOptions output;
  std::string json_path;      ///< "": no report file.
  double write_limit = 0;     ///< Bytes/s of each rank's writes; 0: unlimited. See relaunch.hpp.
  double device_stretch = 1;  ///< See device.hpp.
};

/// A quantity by which the application checks itself: the check passes if |value| <= limit.
struct Check {
  std::string name;
  double value = 0, limit = 0;
  bool passed() const { return value <= limit && value >= -limit; }
};

/// Interface of the application's function to the frame.
struct Run {
  MPI_Comm comm = MPI_COMM_NULL;
  int rank = 0, n_ranks = 1;
  int n_steps = 0;
  StepOutput& output;
  Lanes& lanes;
  std::vector<Check> checks{};   ///< Filled by the application; equal on all ranks.
  std::uint64_t state_hash = 0;  ///< Hash of the final state, from hash_of_state().
  std::vector<std::pair<std::string, double>> facts{};  ///< Additional numbers for the report.

  bool is_root() const { return rank == 0; }
};

int run_application(int argc, char** argv, Arguments& arguments, CommonOptions& common,
                    const std::function<void(Run&)>& simulate);

/// Sum of a value over all ranks, in the order of the ranks. All ranks get the same result, and so
/// do all runs on as many ranks. Collective.
double sum_over_ranks(MPI_Comm comm, double value);
std::vector<double> sum_over_ranks(MPI_Comm comm, const std::vector<double>& values);

/// A block of memory that belongs to the state.
struct StateBytes {
  const void* bytes = nullptr;
  std::size_t n_bytes = 0;
};
template <class T>
StateBytes state_of(const std::vector<T>& values) {
  return {values.data(), values.size() * sizeof(T)};
}
/// One number for the state of all ranks; equal numbers mean equal bits. Collective.
std::uint64_t hash_of_state(MPI_Comm comm, const std::vector<StateBytes>& pieces);

}  // namespace app
