// Counterpart of linked.c that uses PnetCDF's classes for C++.

#include <mpi.h>
#include <pnetcdf>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

int main(int argc, char** argv) {
  constexpr int n_rows = 8;
  constexpr int n_columns = 1000;
  int rank = 0;
  int n_ranks = 0;
  int failures = 0;
  if (argc < 2) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  std::vector<float> values(n_rows * n_columns);
  for (int i = 0; i < n_rows * n_columns; ++i) {
    values[i] = static_cast<float>(rank * n_rows + i / n_columns) +
                0.001F * static_cast<float>(i % n_columns);
  }
  std::vector<float> again(values.size());
  const std::vector<MPI_Offset> start = {static_cast<MPI_Offset>(rank) * n_rows, 0};
  const std::vector<MPI_Offset> count = {n_rows, n_columns};
  try {
    {
      PnetCDF::NcmpiFile file(MPI_COMM_WORLD, argv[1], PnetCDF::NcmpiFile::replace);
      const auto y = file.addDim("y", static_cast<MPI_Offset>(n_rows) * n_ranks);
      const auto x = file.addDim("x", n_columns);
      const auto temp = file.addVar("temp", PnetCDF::ncmpiFloat, {y, x});
      temp.putAtt("units", "K");
      temp.putVar_all(start, count, values.data());
    }
    PnetCDF::NcmpiFile file(MPI_COMM_WORLD, argv[1], PnetCDF::NcmpiFile::read);
    file.getVar("temp").getVar_all(start, count, again.data());
  } catch (const PnetCDF::exceptions::NcmpiException& error) {
    std::fprintf(stderr, "linked: %s\n", error.what());
    ++failures;
  }
  failures += values == again ? 0 : 1;
  int loaded = 0;
  std::ifstream map("/proc/self/maps");
  for (std::string line; std::getline(map, line);) {
    loaded += line.find("/libpnetcdf") != std::string::npos ? 1 : 0;
  }
  std::printf("rank %d of %d: %d failures, real library: %d\n", rank, n_ranks, failures, loaded);
  MPI_Finalize();
  return failures;
}
