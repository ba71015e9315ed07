// Device puts in C++: the fake device of fake_device.h, on any number of ranks. Checks itself.
//
//   device_steps_in_cpp FOLDER

#include <mpi.h>

#include <cstdio>
#include <string>
#include <vector>

#include <tailrace/reader.hpp>
#include <tailrace/tailrace.hpp>

#include "fake_device.h"

namespace {

constexpr std::uint64_t kRows = 60;
constexpr std::uint64_t kColumns = 100;

/// Write a step from the device; @returns the message of the error, or an empty text.
std::string write(const std::string& path, int rank, int n_ranks, FakeDevice& device,
                  tailrace::File::CopyFromDevice copy) {
  const std::uint64_t first = kRows * static_cast<std::uint64_t>(rank) / n_ranks;
  const std::uint64_t end = kRows * static_cast<std::uint64_t>(rank + 1) / n_ranks;
  std::vector<float> values;
  for (std::uint64_t i = first * kColumns; i < end * kColumns; ++i) {
    values.push_back(static_cast<float>(i));
  }
  device_fill(&device, 0, values.data(), values.size() * sizeof(float));
  auto file = tailrace::File::create(path, tailrace::mpi(MPI_COMM_WORLD), "replace=on");
  const auto field = file.define<float>("/u", {kRows, kColumns});
  if (copy) file.copy_from_device(std::move(copy));
  std::string message;
  try {
    field.put_device({{first, 0}, {end - first, kColumns}},
                     reinterpret_cast<const float*>(device.memory));
    file.end_step();
  } catch (const tailrace::Error& error) {
    message = error.what();
  }
  try {
    file.close();
  } catch (const tailrace::Error&) {
  }
  return message;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0;
  int n_ranks = 1;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  const std::string folder = argc > 1 ? argv[1] : ".";
  FakeDevice device;
  device_make(&device, kRows * kColumns * sizeof(float));
  const auto copy = [&](void* to, const void* from, std::size_t n_bytes) {
    return device_copy(&device, to, from, n_bytes);
  };
  int n_wrong = 0;
  const auto check = [&](const char* what, bool right) {
    if (!right) std::fprintf(stderr, "rank %d: %s\n", rank, what);
    n_wrong += right ? 0 : 1;
  };
  check("no error", write(folder + "/good.h5", rank, n_ranks, device, copy).empty());
  auto reader = tailrace::Reader::open(folder + "/good.h5", tailrace::mpi(MPI_COMM_WORLD));
  const std::vector<float> read = reader.read<float>("/u");
  check("size", read.size() == kRows * kColumns);
  reader.close();
  for (std::uint64_t i = 0; i < read.size(); ++i) {
    if (read[i] != static_cast<float>(i)) check("values", false);
  }
  const auto throws = [&](void*, const void*, std::size_t) -> int {
    if (rank == n_ranks - 1) throw std::string("lost the device");
    return 0;
  };
  const std::string thrown = write(folder + "/throws.h5", rank, n_ranks, device, throws);
  check("an exception is an error on all ranks", thrown.find("failed with -1") != thrown.npos);
  const std::string without = write(folder + "/without.h5", rank, n_ranks, device, nullptr);
  check("no function", without.find("without a function") != without.npos);
  device_free(&device);
  int n_wrong_in_all = 0;
  MPI_Allreduce(&n_wrong, &n_wrong_in_all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return n_wrong_in_all == 0 ? 0 : 1;
}
