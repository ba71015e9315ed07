// A program that forgets to close a file before MPI_Finalize.
//
//   mpiexec -n N left_open PATH WHAT OPTIONS
//
// It writes four steps of 1 MB a rank with these options of the file. WHAT it leaves:
//   cpp: a File in main. c: a handle that is destroyed after MPI_Finalize. exit: one that is not.
//   log: a File with a log callback. open: a File with an open step.
//   close: a File that is closed after MPI_Finalize. exception: a File whose last step has failed.
//   reader: a Reader.
// tests/python/test_left_open.py reads its output and its file.

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <string>
#include <tailrace/reader.hpp>
#include <tailrace/tailrace.hpp>
#include <vector>

namespace {

constexpr std::uint64_t kRows = 512;
constexpr std::uint64_t kColumns = 256;

/// Values that take some time to encode.
std::vector<double> values_of(int rank, int step) {
  std::vector<double> values(kRows * kColumns);
  std::uint64_t state = 1 + static_cast<std::uint64_t>(rank);
  for (double& value : values) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    value = step + static_cast<double>(state >> 52) / 4096;
  }
  return values;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const std::string path = argv[1];
  const std::string what = argv[2];
  int rank = 0;
  int n_ranks = 1;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  const auto n = static_cast<std::uint64_t>(n_ranks);
  std::vector<std::vector<double>> values;
  std::vector<std::string> log;
  tailrace::Reader* reader = nullptr;
  tailrace_file* handle = nullptr;
  const auto comm = tailrace::mpi(MPI_COMM_WORLD);
  auto file =
      tailrace::File::create(path, comm, std::string("replace=on,codec=deflate,") + argv[3]);
  if (what == "log") file.on_log([&](std::string_view line) { log.emplace_back(line); });
  const auto u = file.define<double>("/u", {n * kRows, kColumns}, "over-time=on,chunk=64x256");
  const tailrace::Box box({static_cast<std::uint64_t>(rank) * kRows, 0}, {kRows, kColumns});
  for (int step = 0; step < 4; ++step) {
    u.put(box, values.emplace_back(values_of(rank, step)));
    file.end_step();
  }
  if (what == "open") u.put(box, values.front());
  if (what == "exception") {
    u.put({{0, 0}, {1, 1}}, values.front());
    try {
      file.end_step();
    } catch (const tailrace::Error& error) {
      if (rank == 0) std::printf("%s\n", error.what());
    }
  }
  if (what == "reader") {
    file.close();
    reader = new tailrace::Reader(tailrace::Reader::open(path, comm));
    reader->step(1).read_all<double>("/u", box);
  }
  if (what == "c") handle = file.handle();
  MPI_Finalize();
  if (what == "c") {  // Twice: the File's destructor does it again.
    tailrace_file_destroy(handle);
  } else if (what == "exit") {
    new tailrace::File(std::move(file));
  } else if (what == "close") {
    try {
      file.close();
    } catch (const tailrace::Error& error) {
      if (rank == 0) std::printf("%s\n", error.what());
    }
  } else if (what == "log") {
    file = tailrace::File(std::move(file));
    { const tailrace::File ends = std::move(file); }
    for (const std::string& line : log) std::printf("rank %d: %s\n", rank, line.c_str());
  }
  delete reader;
  return 0;
}
