// The frame of an application, from the command line to the exit status.

#include "common/application.hpp"

#include <cstdio>
#include <exception>

#include "common/relaunch.hpp"
#include "common/run_report.hpp"

namespace app {
namespace {

void declare_common_options(Arguments& arguments, CommonOptions& common) {
  OutputOptions& output = common.output;
  arguments.add("--steps", output.n_steps, "iterations to compute");
  arguments.add("--output", output.output,
                {"none", "hdf5", "hdf5-async", "pnetcdf", "sync", "async", "in_situ"},
                "where steps go: nowhere, plain parallel HDF5, PnetCDF, or Tailrace (mode=)");
  arguments.add("--file", output.path, "the output's file");
  arguments.add("--every", output.every, "write each how manieth step");
  arguments.add("--over-time", output.over_time, "one dataset per field, or off: a group per step");
  arguments.add("--codec", output.codec, "Tailrace's codec; none: values as they are");
  arguments.add("--bound", output.bound, "of all fields, rel=1e-3 for instance; \"\": their own");
  arguments.add("--options", output.extra, "more options for Tailrace, key=value,...");
  arguments.add("--fsync", output.fsync, "steps are on stable storage when they are committed");
  arguments.add("--transfer", output.transfer, {"independent", "collective"},
                "plain HDF5's and PnetCDF's writes");
  arguments.add("--records", output.records,
                "PnetCDF: steps are records, or off: a dimension of as many as there will be");
  arguments.add("--filters", output.filters,
                "plain HDF5's filters, ID:value,value;ID..., such as 2;1:4: shuffle, deflate");
  arguments.add("--filter-chunk", output.filter_chunk,
                "the chunks that these filters work on, such as 1x64x64, over time the step first");
  arguments.add_bytes("--write-limit", common.write_limit,
                      "bytes per second that each rank can write, 25MB for instance; 0: no limit");
  arguments.add("--device-stretch", common.device_stretch,
                "the device's busy time over its computing time");
  arguments.add("--json", common.json_path, "a file for the report");
}

/// Computes, closes the output, and reports. Returns the exit status.
int run(Arguments& arguments, const CommonOptions& common,
        const std::function<void(Run&)>& simulate) {
  int rank = 0;
  int n_ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  if (arguments.help_wanted()) {
    if (rank == 0) std::fputs(arguments.help().c_str(), stdout);
    return 0;
  }
  const std::unique_ptr<StepOutput> output = make_output(common.output, MPI_COMM_WORLD);
  Device device(common.device_stretch);
  Lanes lanes(*output, device);
  Run state{.comm = MPI_COMM_WORLD,
            .rank = rank,
            .n_ranks = n_ranks,
            .n_steps = common.output.n_steps,
            .output = *output,
            .lanes = lanes};
  simulate(state);
  MPI_Barrier(MPI_COMM_WORLD);
  const double start_s = MPI_Wtime();
  output->close();
  const double close_s = MPI_Wtime() - start_s;
  return report_run(arguments.program(), common, state, close_s) ? 0 : 1;
}

}  // namespace

int run_application(int argc, char** argv, Arguments& arguments, CommonOptions& common,
                    const std::function<void(Run&)>& simulate) {
  declare_common_options(arguments, common);
  std::string problem = arguments.parse(argc, argv);
  if (problem.empty() && common.device_stretch < 1) problem = "--device-stretch: must be >= 1";
  if (problem.empty() && common.output.n_steps < 1) problem = "--steps: must be >= 1";
  if (problem.empty() && common.output.every < 1) problem = "--every: must be >= 1";
  if (problem.empty() && !arguments.help_wanted()) {
    try {
      relaunch_if_needed(argv, common);
    } catch (const std::exception& error) {
      problem = error.what();
    }
  }
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* program = arguments.program().c_str();
  int exit_status = 2;
  try {
    if (problem.empty()) {
      exit_status = run(arguments, common, simulate);
    } else if (rank == 0) {
      std::fprintf(stderr, "%s: %s\n", program, problem.c_str());
    }
  } catch (const Unavailable& error) {
    if (rank == 0) std::fprintf(stderr, "%s: %s\n", program, error.what());
  } catch (const std::exception& error) {
    // Other ranks may be waiting for this one in a collective call.
    std::fprintf(stderr, "%s, rank %d: %s\n", program, rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return exit_status;
}

std::vector<double> sum_over_ranks(MPI_Comm comm, const std::vector<double>& values) {
  // MPI may add in any order, but the result must be the same in every run.
  int n_ranks = 1;
  MPI_Comm_size(comm, &n_ranks);
  const auto n_values = static_cast<int>(values.size());
  std::vector<double> all(values.size() * static_cast<std::size_t>(n_ranks));
  MPI_Allgather(values.data(), n_values, MPI_DOUBLE, all.data(), n_values, MPI_DOUBLE, comm);
  std::vector<double> sums(values.size(), 0.0);
  for (std::size_t i = 0; i < all.size(); ++i) sums[i % values.size()] += all[i];
  return sums;
}

double sum_over_ranks(MPI_Comm comm, double value) {
  return sum_over_ranks(comm, std::vector<double>{value}).front();
}

std::uint64_t hash_of_state(MPI_Comm comm, const std::vector<StateBytes>& pieces) {
  // FNV-1a, 64 bits; the ranks' hashes are hashed again, in rank order.
  constexpr std::uint64_t kStart = 14695981039346656037U;
  auto extend = [](std::uint64_t hash, const void* bytes, std::size_t n_bytes) {
    const auto* at = static_cast<const unsigned char*>(bytes);
    for (std::size_t i = 0; i < n_bytes; ++i) hash = (hash ^ at[i]) * 1099511628211U;
    return hash;
  };
  std::uint64_t mine = kStart;
  for (const StateBytes& piece : pieces) mine = extend(mine, piece.bytes, piece.n_bytes);
  int n_ranks = 1;
  MPI_Comm_size(comm, &n_ranks);
  std::vector<std::uint64_t> all(static_cast<std::size_t>(n_ranks));
  MPI_Allgather(&mine, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, comm);
  return extend(kStart, all.data(), all.size() * sizeof(std::uint64_t));
}

}  // namespace app
