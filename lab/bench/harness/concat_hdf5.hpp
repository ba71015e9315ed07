// The baseline of `tailrace concat`: concatenation as parallel HDF5 offers it.
//
// Written anew from section 3 of Lee et al. 2022, with the settings that its section 8 found best.
// It keeps what a concatenation of tables needs (groups with datasets, element types, fixed inner
// extents) and nothing else: no attributes, no empty groups, no variable-length elements.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/comm.hpp"
#include "trz/base/status.hpp"

namespace tailrace::bench {

struct Hdf5ConcatRequest {
  std::vector<std::string> inputs;             ///< In the order of the rows.
  std::string output;                          ///< Replaced if it is there.
  unsigned level = 6;                          ///< Of deflate; 0: not compressed.
  std::uint64_t buffer_bytes = 128 << 20;      ///< Of a dataset's rows in a rank's memory.
  std::uint64_t column_chunk_bytes = 1 << 20;  ///< About so large; datasets of one value a row.
  std::uint64_t image_chunk_rows = 128;        ///< Datasets of several.
  bool fsync = true;                           ///< Every rank syncs the file when it is closed.
};

/// Seconds of wall time over the ranks, in a stage's order of time.
struct Hdf5ConcatStage {
  const char* name = "";
  double mean_s = 0;
  double max_s = 0;
};

struct Hdf5ConcatReport {
  std::uint64_t n_files = 0;
  std::uint64_t n_datasets = 0;
  std::uint64_t n_empty = 0;         ///< Datasets without any row.
  std::uint64_t n_writes = 0;        ///< Collective ones.
  std::uint64_t raw_bytes = 0;       ///< Of all datasets in memory.
  std::uint64_t input_bytes = 0;     ///< The files' lengths.
  std::uint64_t output_bytes = 0;    ///< The file's length.
  std::uint64_t peak_rss_bytes = 0;  ///< Largest rank's resident memory.
  /// open (files into memory, and schema), create (datasets), read (and decode), write (and
  /// encode), close, sync.
  std::array<Hdf5ConcatStage, 6> stages;
  double total_s = 0;  ///< From the first open to the last sync, of the slowest rank.
};

/// Concatenate. Collective over `comm`, which must be all ranks. The ranks return the same report
/// and the same Status. A failure may leave a broken output behind.
/// @error unsupported  the build has no parallel HDF5, or elements are not by value.
/// @error invalid_argument  a file's datasets are not those of the first file.
/// @error not_found, io_error, corrupt
Result<Hdf5ConcatReport> concat_with_hdf5(Comm& comm, const Hdf5ConcatRequest& request);

}  // namespace tailrace::bench
