// A program whose iterations are all alike and hardly use the processor. Its computing, exchanges
// and waits are sleeps, and so is the encoding (sleeping_filter.cpp).
//
//   mpiexec -n 2 steady_application FILE OPTIONS [STEPS]
//
// OPTIONS are the file's options, except mode, codec and chunk. An iteration has 60 ms of
// computing, 160 ms on the device and a 40 ms exchange (both lanes). Then it repeats them with 80
// ms more on the device. A rank encodes 10 chunks in 25 ms each, to about 0.8 MB in total.
// tests/python/test_simulate_real.py compares its recordings with the simulator.

#include <mpi.h>

#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <tailrace/tailrace.hpp>
#include <thread>
#include <vector>

namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using tailrace::File;

constexpr std::uint64_t n_chunks = 10;
constexpr std::uint64_t chunk_elements = 32768;  // 128 KiB

/// Chunk c of a rank: a ramp, then zeros from its middle or later; rank 1 has more to write.
std::vector<float> values_of(int rank, int step) {
  std::vector<float> values(n_chunks * chunk_elements);
  for (std::uint64_t chunk = 0; chunk < n_chunks; ++chunk) {
    const std::uint64_t eighths = 3 + (chunk * 3) % 5 + (rank % 2);
    for (std::uint64_t i = 0; i < chunk_elements * eighths / 8; ++i) {
      values[chunk * chunk_elements + i] = static_cast<float>(i + 1) + static_cast<float>(step);
    }
  }
  return values;
}

void exchange(File& file) {
  const auto scope = file.background();
  std::this_thread::sleep_for(milliseconds(40));
}

/// Waits for the device: the program's thread is idle.
void wait_for_device(File& file, milliseconds length) {
  const Clock::time_point done_at = Clock::now() + length;
  file.idle_until([done_at] { return Clock::now() >= done_at; });
}

void iterate(File& file) {
  for (const int more : {0, 80}) {
    std::this_thread::sleep_for(milliseconds(60));
    wait_for_device(file, milliseconds(160 + more));
    exchange(file);
  }
}

void run(int rank, int n_ranks, const std::string& path, const std::string& options, int n_steps) {
  auto file = File::create(path, tailrace::mpi(MPI_COMM_WORLD),
                           "mode=in_situ,fsync=off,codec=id=300,cd=25000,chunk=1x32768," + options);
  const auto rows = [](int n) { return n_chunks * static_cast<std::uint64_t>(n); };
  auto field = file.define<float>("/values", {rows(n_ranks), chunk_elements}, "over-time=on");
  const tailrace::Box box({rows(rank), 0}, {n_chunks, chunk_elements});
  for (int step = 0; step < n_steps; ++step) {
    iterate(file);
    field.put_copy(box, values_of(rank, step));
    file.end_step();
  }
  file.close();
}

}  // namespace

int main(int n_arguments, char** arguments) {
  if (n_arguments < 3) {
    std::fprintf(stderr, "use: steady_application FILE OPTIONS [STEPS]\n");
    return 2;
  }
  MPI_Init(&n_arguments, &arguments);
  int rank = 0;
  int n_ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  try {
    run(rank, n_ranks, arguments[1], arguments[2], n_arguments > 3 ? std::atoi(arguments[3]) : 8);
  } catch (const tailrace::Error& error) {
    std::fprintf(stderr, "rank %d: %s\n", rank, error.what());
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  MPI_Finalize();
  return 0;
}
