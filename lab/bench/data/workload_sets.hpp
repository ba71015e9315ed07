// Data that the bench writes: real sets of the project's data folder, any file, or generated fields
// of the same kinds.
//
// The folder is --data, else $TAILRACE_DATA, else ../shared/data relative to the working folder of
// the bench. If the folder is missing, the set is generated, and its label says so.

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

/// Complete field as read or generated, before it is fitted to a rank's block.
struct SourceField {
  std::string path;
  DType dtype = DType::f32;
  Shape shape;
  std::optional<double> fill_value;
  Buffer values;             ///< Values in row-major order.
  bool is_block = false;     ///< Generated in the shape of this rank's block: no tiling.
  std::size_t n_fields = 0;  ///< Number of fields of the set.
};

/// Description of the fields' origin.
struct Source {
  std::string label;                 ///< "real nyx64_s140.h5", "synthetic nyx, seed 1".
  std::vector<std::string> remarks;  ///< Omitted fields and stand-ins, with reasons.
};

/// True if `name` is nyx, particles or climate.
bool is_workload_set(const std::string& name);

/// Call `take` with each field of the workload in turn. Every rank reads or generates its fields.
/// Not collective, but all ranks must call it alike. @error  like open_input_file() and `take`
Result<Source> visit_source(const Comm& comm, const BenchOptions& options,
                            const std::function<Status(SourceField&&)>& take);

/// Block of one rank: --cells, or about --size-per-rank over `n_fields` fields; empty without
/// either. Cubes grow equally in all dimensions, other shapes along their first dimension.
Shape wanted_block(const BenchOptions& options, std::size_t n_fields, const Shape& shape,
                   std::uint64_t element_bytes);

}  // namespace tailrace::bench
