// Workload: the fields that every method writes, one block of each on every rank.
//
// Fields come from real files, tiled over the ranks, or from generators (workload_sets.hpp). Bounds
// are made absolute here, before any clock starts, so that no method's time includes finding the
// range.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "bench_options.hpp"
#include "codec/verify.hpp"
#include "core/comm.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace::bench {

struct BenchField {
  std::string path;  ///< "/temperature"
  DType dtype = DType::f32;
  Shape shape;                       ///< Shape of the global field.
  Box box;                           ///< This rank's block.
  Shape chunk_shape;                 ///< Divides the block evenly.
  std::optional<double> fill_value;  ///< Stored exactly and excluded from the range.
  double least = 0;                  ///< Least value of all ranks, without fill values.
  double greatest = 0;
  double absolute_bound = 0;  ///< Bound in the unit of the field; 0: exact.
  Buffer values;              ///< Values of the block, row-major.

  std::uint64_t block_bytes() const { return box.n_elements() * dtype_bytes(dtype); }
  std::uint64_t chunk_bytes() const { return n_elements(chunk_shape) * dtype_bytes(dtype); }
  ChunkGrid grid() const { return {shape, chunk_shape}; }
};

struct Workload {
  std::vector<BenchField> fields;
  std::string source;                 ///< "synthetic nyx, seed 1", or the file and its tiling.
  std::vector<std::string> remarks;   ///< Omitted fields and stand-ins, with reasons.
  std::uint64_t raw_bytes = 0;        ///< Sum over all ranks.
  std::uint64_t chunks_per_rank = 0;  ///< Sum over all fields.
  std::uint64_t checksum = 0;         ///< FNV-1a of all values, over the ranks in order.
};

/// Make this rank's blocks, exact until a bound is set. Collective; each rank makes or reads its
/// values independently.
/// @error invalid_argument  shapes do not fit.  @error  like open_input_file()
Result<Workload> make_workload(Comm& comm, const BenchOptions& options);

/// Set the bound of all fields without a bound of their own. Not collective.
void set_bound(const ErrorBound& bound, const std::vector<FieldBound>& field_bounds,
               Workload& work);

/// Grid of the ranks' blocks, as even as the dimensions allow; the product is n_ranks.
Shape rank_grid(int n_ranks, std::size_t n_dimensions);

}  // namespace tailrace::bench
