// Baseline of `tailrace concat`: concatenation by parallel HDF5.
//
// An independent implementation of section 3 of Lee et al. 2022, with the best settings of its
// section
// 8. It supports only what a concatenation of tables needs: groups with datasets, element types,
//    fixed inner extents. It drops attributes and empty groups, and rejects variable-length
//    elements.

#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "core/comm.hpp"
#include "trz/base/status.hpp"

namespace tailrace::bench {

struct Hdf5ConcatRequest {
  std::vector<std::string> inputs;             ///< Files in the order of their rows.
  std::string output;                          ///< Replaced if it exists.
  unsigned level = 6;                          ///< Level of deflate; 0: not compressed.
  std::uint64_t buffer_bytes = 128 << 20;      ///< A rank's buffer for the rows of a dataset.
  std::uint64_t column_chunk_bytes = 1 << 20;  ///< Approximate; for datasets of one value per row.
  std::uint64_t image_chunk_rows = 128;  ///< Chunk length of datasets of several values per row.
  bool fsync = true;                     ///< Every rank syncs the file at its close.
};

/// Seconds of wall time of one stage: mean and maximum over ranks.
struct Hdf5ConcatStage {
  const char* name = "";
  double mean_s = 0;
  double max_s = 0;
};

struct Hdf5ConcatReport {
  std::uint64_t n_files = 0;
  std::uint64_t n_datasets = 0;
  std::uint64_t n_empty = 0;         ///< Datasets without rows.
  std::uint64_t n_writes = 0;        ///< Number of collective writes.
  std::uint64_t raw_bytes = 0;       ///< Uncompressed size of all datasets.
  std::uint64_t input_bytes = 0;     ///< Sum of the files' lengths.
  std::uint64_t output_bytes = 0;    ///< Length of the output file.
  std::uint64_t peak_rss_bytes = 0;  ///< Largest rank's resident memory.
  /// Stages in order of time: open (files into memory, and schema), create (datasets), read (and
  /// decode), write (and encode), close, sync.
  std::array<Hdf5ConcatStage, 6> stages;
  double total_s = 0;  ///< Time of the slowest rank, from the first open to the last sync.
};

/// Concatenate. Collective over `comm`, which must contain all ranks. All ranks return the same
/// report and the same Status. A failure may leave a broken output file.
/// @error unsupported  the build has no parallel HDF5, or elements are not stored by value.
/// @error invalid_argument  a file's datasets differ from those of the first file.
/// @error not_found, io_error, corrupt
Result<Hdf5ConcatReport> concat_with_hdf5(Comm& comm, const Hdf5ConcatRequest& request);

}  // namespace tailrace::bench
