// A run that may be killed at any moment and is continued on any number of ranks.
//
// Each step stores the complete state as one entry of /u, and its time in /time. File::recover
// repairs what a killed run left, at whatever moment. A restart then reads the last committed
// entry, each rank its own rows, whatever the number of ranks that wrote it. mode=async and
// mode=in_situ lose at most two steps more than mode=sync, and compute them again.
//
//   mpiexec -n 4 ./restart run.h5 [sync|async|in_situ] [STEPS]
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <tailrace/reader.hpp>
#include <tailrace/tailrace.hpp>

#ifdef TAILRACE_WITH_MPI
#include <mpi.h>
#endif

constexpr std::uint64_t kRows = 96, kColumns = 160;

int run(const std::string& path, const std::string& mode, std::uint64_t n_steps) {
  int rank = 0, n_ranks = 1;
  tailrace::Comm comm;
#ifdef TAILRACE_WITH_MPI
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  comm = tailrace::mpi(MPI_COMM_WORLD);
#endif
  const std::uint64_t first = kRows * rank / n_ranks, last = kRows * (rank + 1) / n_ranks;
  const tailrace::Box mine({first, 0}, {last - first, kColumns});

  std::uint64_t step = 0;
  std::vector<double> u(mine.n_elements());
  for (std::uint64_t i = 0; i < u.size(); ++i) u[i] = double(first * kColumns + i + 1) / 20000;
  const bool exists = tailrace::File::recover(path, comm);  // Alike on all ranks.
  if (exists) {
    auto reader = tailrace::Reader::open(path, comm);
    if (const auto committed = reader.last_step()) {
      reader.step(*committed).read_all("/u", mine, u);
      step = *committed + 1;
    }
    reader.close();
  }
  if (rank == 0) std::printf("from step %d on %d ranks\n", int(step), n_ranks);
  std::fflush(stdout);

  const std::string options = "mode=" + mode;
  auto file = exists ? tailrace::File::open(path, comm, options)
                     : tailrace::File::create(path, comm, options);
  auto field = file.define<double>("/u", {{"y", kRows}, {"x", kColumns}}, "over-time=on");
  for (; step < n_steps; ++step) {
    for (double& value : u) value = 2.75 * value * (1 - value);  // The simulation.
    field.put(mine, u);
    file.set_time(0.25 * double(step), "days since 2000-01-01");
    file.end_step();
  }
  file.close();
  return 0;
}

int main(int argc, char** argv) {
#ifdef TAILRACE_WITH_MPI
  MPI_Init(&argc, &argv);
#endif
  int status = 1;
  try {
    status = run(argc > 1 ? argv[1] : "run.h5", argc > 2 ? argv[2] : "sync",
                 argc > 3 ? std::strtoull(argv[3], nullptr, 10) : 40);
  } catch (const tailrace::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
  }
#ifdef TAILRACE_WITH_MPI
  if (status != 0) MPI_Abort(MPI_COMM_WORLD, status);
  MPI_Finalize();
#endif
  return status;
}
