// Workload: the fields that every method writes, one block of each on every rank.
//
// Fields come from real files, tiled over the ranks, or from generators (workload_sets.hpp). Bounds
// are made absolute here, before any clock starts, so that no method pays for finding the range.

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
  Shape shape;                       ///< Global.
  Box box;                           ///< This rank's block.
  Shape chunk_shape;                 ///< Divides the block.
  std::optional<double> fill_value;  ///< Kept exactly and left out of the range.
  double least = 0;                  ///< Of all ranks' values that are not fill.
  double greatest = 0;
  double absolute_bound = 0;  ///< Unit of the field; 0: exact.
  Buffer values;              ///< The block, row-major.

  std::uint64_t block_bytes() const { return box.n_elements() * dtype_bytes(dtype); }
  std::uint64_t chunk_bytes() const { return n_elements(chunk_shape) * dtype_bytes(dtype); }
  ChunkGrid grid() const { return {shape, chunk_shape}; }
};

struct Workload {
  std::vector<BenchField> fields;
  std::string source;                 ///< "synthetic nyx, seed 1" or what file, how tiled.
  std::vector<std::string> remarks;   ///< Fields that were left out, stand-ins, and why.
  std::uint64_t raw_bytes = 0;        ///< All ranks.
  std::uint64_t chunks_per_rank = 0;  ///< All fields.
  std::uint64_t checksum = 0;         ///< FNV-1a of all values, over the ranks in order.
};

/// Make this rank's blocks, exact until a bound is set. Collective. Values are made or read by each
/// rank alone.
/// @error invalid_argument  shapes that do not fit.  @error as of open_input_file.
Result<Workload> make_workload(Comm& comm, const BenchOptions& options);

/// Let all fields be written under this bound from now on, but for those that have their own. Not
/// collective.
void set_bound(const ErrorBound& bound, const std::vector<FieldBound>& field_bounds,
               Workload& work);

/// The blocks of the ranks laid out as evenly as the dimensions allow: n_ranks = product.
Shape rank_grid(int n_ranks, std::size_t n_dimensions);

}  // namespace tailrace::bench
