// The frame of an analysis, from the command line to the exit status.

#include "climate/analysis.hpp"

#include <algorithm>
#include <cstdio>
#include <exception>
#include <filesystem>

#include "common/variant.hpp"

namespace climate {
namespace {

struct Options {
  InputOptions input;
  double memory_bytes = 32 << 20;
  double read_limit = 0;
  std::string json_path;
};

void declare(app::Arguments& arguments, Options& options) {
  InputOptions& input = options.input;
  arguments.add("--input", input.input, {"tailrace", "pnetcdf", "hdf5"}, "who reads the file");
  arguments.add("--file", input.path, "the data set");
  arguments.add("--variable", input.variable,
                "f32, (time, layer, lat, lon) or (time, layer, cell)");
  arguments.add("--transfer", input.transfer, {"collective", "independent"}, "reads");
  arguments.add("--options", input.extra, "options of Tailrace's reader, key=value,...");
  arguments.add_bytes("--memory", options.memory_bytes, "values that a rank reads at once");
  arguments.add_bytes("--read-limit", options.read_limit,
                      "bytes per second that each rank can read, 25MB for instance; 0: no limit");
  arguments.add("--json", options.json_path, "a file for the report");
}

std::string suffix_of(const std::string& input) { return input == "tailrace" ? "" : "-" + input; }

/// Replaces the process by the executable that --input needs, with the library that --read-limit
/// needs.
void relaunch_if_needed(char** argv, const Options& options) {
  const std::string suffix = suffix_of(options.input.input);
  const bool here = suffix == app::linked_suffix();
  const std::filesystem::path program =
      here ? app::own_program() : app::variant_of_program(suffix, "--input " + options.input.input);
  const bool limited =
      app::limit_storage(app::Transfer::read, options.read_limit, options.input.path);
  if (!here || limited) app::execute_anew(program, argv);
}

/// Times of all ranks: the mean of each phase, the slowest rank's total, and the bytes read in
/// total.
struct Times {
  double total_s = 0, open_s = 0, io_s = 0, compute_s = 0, exchange_s = 0;
  double value_bytes = 0, storage_bytes = 0;
};

Times gather_times(MPI_Comm comm, const Analysis& analysis, double open_s, double total_s) {
  const auto storage_bytes = static_cast<double>(app::limited_bytes(app::Transfer::read));
  double sums[] = {open_s,
                   analysis.io_s,
                   analysis.compute_s,
                   analysis.exchange_s,
                   static_cast<double>(analysis.value_bytes),
                   storage_bytes};
  MPI_Allreduce(MPI_IN_PLACE, sums, 6, MPI_DOUBLE, MPI_SUM, comm);
  Times times;
  MPI_Allreduce(&total_s, &times.total_s, 1, MPI_DOUBLE, MPI_MAX, comm);
  const double n = analysis.n_ranks();
  times.open_s = sums[0] / n;
  times.io_s = sums[1] / n;
  times.compute_s = sums[2] / n;
  times.exchange_s = sums[3] / n;
  times.value_bytes = sums[4];
  times.storage_bytes = sums[5];
  return times;
}

void write_json(const std::string& program, const Options& options, const Analysis& analysis,
                const Times& times) {
  app::JsonFile json(options.json_path);
  json.open(nullptr, '{');
  json.text("program", program);
  json.text("input", options.input.input);
  json.text("file", std::filesystem::path(options.input.path).filename());
  json.text("variable", options.input.variable);
  json.text("transfer", options.input.transfer);
  json.count("n_ranks", static_cast<std::uint64_t>(analysis.n_ranks()));
  json.number("read_limit_bytes_per_s", options.read_limit);
  json.count("n_times", analysis.grid().n_times);
  json.count("n_layers", analysis.grid().n_layers);
  json.count("n_cells", analysis.grid().n_cells);
  json.number("total_s", times.total_s);
  json.number("open_s", times.open_s);
  json.number("io_s", times.io_s);
  json.number("compute_s", times.compute_s);
  json.number("exchange_s", times.exchange_s);
  json.count("value_bytes", static_cast<std::uint64_t>(times.value_bytes));
  json.count("storage_bytes", static_cast<std::uint64_t>(times.storage_bytes));
  json.open("answer", '{');
  analysis.write(json);
  json.close('}');
  json.close('}');
}

void run(const std::string& program, const Options& options,
         const std::function<void(Analysis&)>& analyse) {
  MPI_Comm comm = MPI_COMM_WORLD;
  MPI_Barrier(comm);
  const double start_s = MPI_Wtime();
  const std::unique_ptr<ClimateInput> input = open_input(options.input, comm);
  const double open_s = MPI_Wtime() - start_s;
  Analysis analysis(comm, *input, options.memory_bytes);
  analyse(analysis);
  input->close();
  const Times times = gather_times(comm, analysis, open_s, MPI_Wtime() - start_s);
  if (!analysis.is_root()) return;
  analysis.print();
  std::printf(
      "%.1f MB in %.3f s: opening %.3f s, reading %.3f s, computing %.3f s, exchange %.3f s",
      times.value_bytes / 1e6, times.total_s, times.open_s, times.io_s, times.compute_s,
      times.exchange_s);
  if (times.storage_bytes > 0) {
    std::printf("; %.1f MB from storage", times.storage_bytes / 1e6);
  }
  std::printf("\n");
  if (!options.json_path.empty()) write_json(program, options, analysis, times);
}

}  // namespace

Analysis::Analysis(MPI_Comm comm, ClimateInput& input, double memory_bytes)
    : input_(input), comm_(comm), memory_bytes_(memory_bytes) {
  MPI_Comm_rank(comm, &rank_);
  MPI_Comm_size(comm, &n_ranks_);
}

const float* Analysis::read(const Part& part) {
  // Touched in advance, so that reading times do not include page faults of new memory.
  if (values_.size() < part.n_values(grid())) values_.resize(part.n_values(grid()));
  const double start_s = MPI_Wtime();
  input_.read(part, values_.data());
  io_s += MPI_Wtime() - start_s;
  value_bytes += part.n_values(grid()) * sizeof(float);
  return values_.data();
}

void Analysis::compute(const std::function<void()>& work) {
  const double start_s = MPI_Wtime();
  work();
  compute_s += MPI_Wtime() - start_s;
}

std::vector<double> Analysis::gather(const std::vector<double>& mine) {
  const double start_s = MPI_Wtime();
  const auto n_mine = static_cast<int>(mine.size());
  std::vector<int> counts(is_root() ? static_cast<std::size_t>(n_ranks_) : 0);
  MPI_Gather(&n_mine, 1, MPI_INT, counts.data(), 1, MPI_INT, 0, comm_);
  std::vector<int> before(counts.size());
  int n_all = 0;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    before[i] = n_all;
    n_all += counts[i];
  }
  std::vector<double> all(static_cast<std::size_t>(n_all));
  MPI_Gatherv(mine.data(), n_mine, MPI_DOUBLE, all.data(), counts.data(), before.data(), MPI_DOUBLE,
              0, comm_);
  exchange_s += MPI_Wtime() - start_s;
  return all;
}

Share share_of(std::uint64_t n, int rank, int n_ranks) {
  const auto r = static_cast<std::uint64_t>(rank);
  const auto all = static_cast<std::uint64_t>(n_ranks);
  const std::uint64_t first = n / all * r + std::min(n % all, r);
  return {first, n / all + (r < n % all ? 1 : 0)};
}

int run_analysis(int argc, char** argv, app::Arguments& arguments,
                 const std::function<void(Analysis&)>& analyse) {
  Options options;
  for (const char* input : {"tailrace", "pnetcdf", "hdf5"}) {
    if (suffix_of(input) == app::linked_suffix()) options.input.input = input;
  }
  declare(arguments, options);
  std::string problem = arguments.parse(argc, argv);
  if (problem.empty() && !arguments.help_wanted()) {
    try {
      relaunch_if_needed(argv, options);
    } catch (const std::exception& error) {
      problem = error.what();
    }
  }
  int provided = 0;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided);
  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const char* program = arguments.program().c_str();
  int exit_status = 0;
  try {
    if (!problem.empty()) throw app::Unavailable(problem);
    if (arguments.help_wanted()) {
      if (rank == 0) std::fputs(arguments.help().c_str(), stdout);
    } else {
      run(arguments.program(), options, analyse);
    }
  } catch (const app::Unavailable& error) {
    if (rank == 0) std::fprintf(stderr, "%s: %s\n", program, error.what());
    exit_status = 2;
  } catch (const std::exception& error) {
    // Other ranks may be waiting for this one in a collective call.
    std::fprintf(stderr, "%s, rank %d: %s\n", program, rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return exit_status;
}

}  // namespace climate
