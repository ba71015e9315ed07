// export: datasets without compression, as HDF5, as .npy, or as raw values.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "verbs/repack.hpp"

namespace tailrace::verbs {

/// A file of plain values that is whole.
struct ExportedFile {
  std::string path;
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t raw_bytes = 0;
};

struct ExportRequest {
  std::string input;
  std::string output;
  std::string format;  ///< "hdf5", "npy", "raw"; empty: by the output's name.
  bool replace = false;
  FieldSelection selection;
  std::string slab;  ///< "0:10,5:20:2"; empty: all.
  int level = 0;  ///< In its place: every 2^level-th value along the axes that coarse views halve.
  std::string read_options;  ///< See core/options.
  double abs_bound = 0;      ///< As ReadOptions::abs_bound; not where all becomes HDF5.
  std::string plugin_path;
  bool follow_external = false;  ///< Values in other files, too (OtherFiles).
  /// Called at rank 0 for each .npy or raw file, once it is there. May be empty.
  std::function<void(const ExportedFile&)> written;
};

struct ExportReport {
  std::optional<RepackReport> repacked;  ///< As HDF5 and whole, an export is a repack.
};

/// Write what the request selects.
/// As HDF5 it is a repack with codec none, which carries over everything else of the file; a slab
/// of it is a netCDF-4 file of its own. As .npy and raw values every rank reads its rows, in pieces
/// of whole rows of chunks that its memory holds, and writes them at their place: files of plain
/// values need no coordination but their creation, by rank 0 under another name, and their renaming
/// when all is written.
/// Collective. @error invalid_argument, bad_coverage  a word of the request.  @error unsupported
/// no numbers.  @error not_found, corrupt, already_exists, io_error, no_space
Result<ExportReport> export_files(const VerbRanks& ranks, const ExportRequest& request);

}  // namespace tailrace::verbs
