// run_analysis: the common frame of the two analyses: options, MPI, input, times, report.
//
//   int main(int argc, char** argv) {
//     app::Arguments arguments("at", "Mean temperature of each layer.");
//     return climate::run_analysis(argc, argv, arguments, analyse);
//   }
//
// The exit status is 0; 1 if an error ended the program; 2 if the command line is wrong or requests
// something that this machine lacks.

#pragma once

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "climate/climate_input.hpp"
#include "common/arguments.hpp"
#include "common/json_file.hpp"

namespace climate {

/// Interface of an analysis to the frame. Its phases run through the functions below, which time
/// them.
class Analysis {
 public:
  Analysis(MPI_Comm comm, ClimateInput& input, double memory_bytes);

  int rank() const { return rank_; }
  int n_ranks() const { return n_ranks_; }
  bool is_root() const { return rank_ == 0; }
  const Grid& grid() const { return input_.grid(); }
  float fill_value() const { return input_.fill_value(); }
  double memory_bytes() const { return memory_bytes_; }

  /// Reads a part; the values are valid until the next read. Collective.
  const float* read(const Part& part);
  void compute(const std::function<void()>& work);
  /// The doubles of all ranks, one rank after the other, at rank 0 (empty elsewhere). Collective.
  std::vector<double> gather(const std::vector<double>& mine);

  /// Called at rank 0 at the end. Prints the answer, and writes it into the open object of the
  /// report, if the user requested a report.
  std::function<void()> print;
  std::function<void(app::JsonFile&)> write;

  double io_s = 0, compute_s = 0, exchange_s = 0;
  std::uint64_t value_bytes = 0;  ///< Read by this rank, uncompressed.

 private:
  ClimateInput& input_;
  MPI_Comm comm_;
  int rank_ = 0, n_ranks_ = 1;
  double memory_bytes_;
  std::vector<float> values_;
};

/// [first, first + count) of `n` for one rank of `n_ranks`; shares differ by at most one.
struct Share {
  std::uint64_t first = 0, count = 0;
};
Share share_of(std::uint64_t n, int rank, int n_ranks);

int run_analysis(int argc, char** argv, app::Arguments& arguments,
                 const std::function<void(Analysis&)>& analyse);

}  // namespace climate
