// A program on the C++ interface, whose files scripts/reader-matrix passes to readers.
//
//   matrix_writer FILE one|steps [OPTIONS]
//
// `one` writes everything in one step. `steps` writes fields that grow over time, in three steps,
// and opens the file again before the second and the third.

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <exception>
#include <string>
#include <vector>

#include <tailrace/tailrace.hpp>

#ifdef MATRIX_MPI
#include <mpi.h>
#endif

namespace {

constexpr std::uint64_t kRows = 20, kColumns = 24;

// Multiples of 1/64, so that all sums are exact in any order.
template <class T>
std::vector<T> values(std::uint64_t n, std::uint64_t first) {
  std::vector<T> all(n);
  for (std::uint64_t i = 0; i < n; ++i) {
    all[i] = static_cast<T>(static_cast<double>((i * 7 + first * 5) % 4096) / 64.0 + 100.0);
  }
  return all;
}

void add_attributes(tailrace::File& file, const std::string& path) {
  file.set_attribute(path, "units", "K");
  for (int i = 1; i <= 12; ++i) {
    const std::string name = (i < 10 ? "a0" : "a") + std::to_string(i);
    file.set_attribute(path, name, i / 4.0);
  }
}

void write_one(const std::string& path, const std::string& options) {
  auto file = tailrace::File::create(path, tailrace::serial(), options);
  auto field = file.define<float>("/field", {6, kRows, kColumns}, "chunk=2x10x24");
  auto count = file.define<std::int32_t>("/group/count", {kRows, kColumns}, "bound=none");
  auto scalar = file.define<double>("/scalar", {}, "bound=none");
  const auto field_values = values<float>(6 * kRows * kColumns, 1);
  const auto count_values = values<std::int32_t>(kRows * kColumns, 2);
  const std::vector<double> scalar_value{2.5};
  field.put(field_values);
  count.put(count_values);
  scalar.put(scalar_value);
  file.set_attribute("/", "title", "one step");
  add_attributes(file, "/field");
  file.end_step();
  file.close();
}

void write_steps(const std::string& path, const std::string& options) {
  const std::string all = options + (options.empty() ? "" : ",") + "over-time=on";
  for (std::uint64_t step = 0; step < 3; ++step) {
    auto file = step == 0 ? tailrace::File::create(path, tailrace::serial(), all)
                          : tailrace::File::open(path, tailrace::serial(), all);
    auto field = file.define<float>("/field", {kRows, kColumns});
    auto count = file.define<std::int32_t>("/group/count", {kRows}, "bound=none");
    auto time = file.define<double>("/time", {}, "bound=none");
    const auto field_values = values<float>(kRows * kColumns, step);
    const auto count_values = values<std::int32_t>(kRows, step);
    const std::vector<double> now{static_cast<double>(step) / 2};
    field.put(field_values);
    count.put(count_values);
    time.put(now);
    if (step == 0) {
      file.set_attribute("/", "title", "steps");
      add_attributes(file, "/field");
    }
    file.end_step();
    file.close();
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
#ifdef MATRIX_MPI
  MPI_Init(&argc, &argv);
#endif
  int status = 0;
  try {
    const std::string options = argc > 3 ? argv[3] : "";
    if (std::strcmp(argv[2], "steps") == 0) {
      write_steps(argv[1], options);
    } else {
      write_one(argv[1], options);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "matrix_writer: %s\n", error.what());
    status = 1;
  }
#ifdef MATRIX_MPI
  MPI_Finalize();
#endif
  return status;
}
