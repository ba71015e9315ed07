// The data that the bench writes: real sets of the project's data folder, any file, or generated
// fields of the same kinds for machines that have neither.
//
// The folder is --data, else $TAILRACE_DATA, else ../shared/data seen from where the bench runs.
// Where it is not, a set is generated and its label says so.

#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "bench_options.hpp"
#include "core/comm.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace::bench {

/// A whole field as it was read or made, before it is fitted into a rank's block.
struct SourceField {
  std::string path;
  DType dtype = DType::f32;
  Shape shape;
  std::optional<double> fill_value;
  Buffer values;             ///< Row-major.
  bool is_block = false;     ///< Made for this rank as it is wanted: nothing to tile.
  std::size_t n_fields = 0;  ///< That the set has.
};

/// Where fields come from.
struct Source {
  std::string label;                 ///< "real nyx64_s140.h5", "synthetic nyx, seed 1".
  std::vector<std::string> remarks;  ///< Fields that were left out, stand-ins, and why.
};

/// Whether `name` is nyx, particles or climate.
bool is_workload_set(const std::string& name);

/// Hand the fields of the workload over, one after the other. Every rank reads or makes its own.
/// Not collective, but the ranks must call it alike. @error as of open_input_file and `take`.
Result<Source> visit_source(const Comm& comm, const BenchOptions& options,
                            const std::function<Status(SourceField&&)>& take);

/// The block of one rank: --cells, or about --size-per-rank over `n_fields` fields; empty if
/// neither is given. A cube grows alike in all dimensions, other shapes along their first.
Shape wanted_block(const BenchOptions& options, std::size_t n_fields, const Shape& shape,
                   std::uint64_t element_bytes);

}  // namespace tailrace::bench
