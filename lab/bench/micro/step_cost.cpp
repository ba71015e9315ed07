// step_cost: measures what a steady step costs a program, other than its encoding and writing.
//
//   mpiexec -n 2 step_cost FILE [OPTIONS [FIELDS [VALUES [COMPUTE_MS [STEPS [IDLE]]]]]]
//
// The program puts FIELDS (6) fields over time, of VALUES (131072) doubles per rank each, and calls
// end_step, STEPS (60) times. Before each step it computes for COMPUTE_MS (20) and enters a
// barrier. For the share IDLE (0) of that time it waits instead, as if for a device, and calls
// idle_until(). OPTIONS are the file's ("mode=async,fsync=off").
//
// Prints one line: the median, the 90th percentile and the maximum of end_step's time over the
// steps, in milliseconds, of the slowest rank in each step. Then follow the encode and write time
// of one rank per step. The first five steps, in which the fields are decided, do not count; the
// last number is the time of the very first step, which creates the fields.

#include <mpi.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tailrace/tailrace.hpp>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
constexpr int n_first = 5;

struct Arguments {
  std::string path;
  std::string options = "fsync=off";
  std::uint64_t n_fields = 6;
  std::uint64_t n_values = 131072;
  double compute_ms = 20;
  int n_steps = 60;
  double idle_share = 0;
};

double ms_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

/// Smooth values with some noise; each step writes a different section of them.
std::vector<double> signal(std::uint64_t n) {
  std::vector<double> values(n);
  std::uint64_t state = 88172645463325252U;
  for (std::uint64_t i = 0; i < n; ++i) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    values[i] =
        std::sin(static_cast<double>(i) / 300) + 1e-3 * static_cast<double>(state % 1000) / 1000;
  }
  return values;
}

void compute(double ms) {
  const Clock::time_point start = Clock::now();
  while (ms_since(start) < ms) {
  }
}

double at_share(std::vector<double> sorted, double share) {
  return sorted[static_cast<std::size_t>(share * static_cast<double>(sorted.size() - 1))];
}

void run(const Arguments& given, int rank, int n_ranks) {
  auto file = tailrace::File::create(given.path, tailrace::mpi(MPI_COMM_WORLD), given.options);
  std::vector<tailrace::Field<double>> fields;
  for (std::uint64_t f = 0; f < given.n_fields; ++f) {
    fields.push_back(file.define<double>("/field" + std::to_string(f),
                                         {given.n_values * static_cast<std::uint64_t>(n_ranks)},
                                         "over-time=on,codec=trz,bound=abs=1e-4"));
  }
  const std::vector<double> values = signal(given.n_values + 64);
  const tailrace::Box box({given.n_values * static_cast<std::uint64_t>(rank)}, {given.n_values});
  std::vector<double> step_ms;
  double first_ms = 0;
  double encode_s = 0;
  double write_s = 0;
  for (int step = 0; step < given.n_steps + n_first; ++step) {
    compute(given.compute_ms * (1 - given.idle_share));
    const Clock::time_point idle_start = Clock::now();
    const double idle_ms = given.compute_ms * given.idle_share;
    if (idle_ms > 0) file.idle_until([&] { return ms_since(idle_start) >= idle_ms; });
    MPI_Barrier(MPI_COMM_WORLD);
    const Clock::time_point start = Clock::now();
    for (const auto& field : fields) {
      field.put(box,
                std::span(values).subspan(static_cast<std::size_t>(step % 64), given.n_values));
    }
    const tailrace::StepReport report = file.end_step();
    double ms = ms_since(start);
    MPI_Allreduce(MPI_IN_PLACE, &ms, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    if (step == 0) first_ms = ms;
    if (step < n_first) continue;
    step_ms.push_back(ms);
    encode_s += report.encode_s;
    write_s += report.write_s;
  }
  file.close();
  if (rank != 0) return;
  std::ranges::sort(step_ms);
  std::printf(
      "%s, %d ranks: median %.2f, 90 %% %.2f, max %.2f; encode %.2f, write %.2f; first %.2f ms\n",
      given.options.c_str(), n_ranks, at_share(step_ms, 0.5), at_share(step_ms, 0.9),
      step_ms.back(), 1e3 * encode_s / given.n_steps, 1e3 * write_s / given.n_steps, first_ms);
}

}  // namespace

int main(int n_arguments, char** arguments) {
  if (n_arguments < 2) {
    std::fprintf(stderr,
                 "use: step_cost FILE [OPTIONS [FIELDS [VALUES [COMPUTE_MS [STEPS [IDLE]]]]]]\n");
    return 2;
  }
  MPI_Init(&n_arguments, &arguments);
  int rank = 0;
  int n_ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  Arguments given{arguments[1]};
  if (n_arguments > 2) given.options = arguments[2];
  if (n_arguments > 3) given.n_fields = std::strtoull(arguments[3], nullptr, 10);
  if (n_arguments > 4) given.n_values = std::strtoull(arguments[4], nullptr, 10);
  if (n_arguments > 5) given.compute_ms = std::strtod(arguments[5], nullptr);
  if (n_arguments > 6) given.n_steps = std::max(std::atoi(arguments[6]), 1);
  if (n_arguments > 7) given.idle_share = std::strtod(arguments[7], nullptr);
  try {
    run(given, rank, n_ranks);
  } catch (const tailrace::Error& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
