// export: writes datasets without compression, as HDF5, as .npy, or as raw values.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "verbs/repack.hpp"

namespace tailrace::verbs {

/// A complete file of plain values.
struct ExportedFile {
  std::string path;
  DType dtype = DType::f32;
  Shape shape;
  std::uint64_t raw_bytes = 0;
};

struct ExportRequest {
  std::string input;
  std::string output;
  std::string format;  ///< "hdf5", "npy", "raw"; empty: chosen by the output's name.
  bool replace = false;
  FieldSelection selection;
  std::string slab;  ///< "0:10,5:20:2"; empty: the complete datasets.
  int level = 0;     ///< Instead of a slab: every 2^level-th value along the axes that coarse views
                     ///< halve.
  std::string read_options;  ///< Options of core/options for reading.
  double abs_bound = 0;      ///< See ReadOptions::abs_bound. Must be 0 if complete files are
                             ///< exported as HDF5.
  std::string plugin_path;
  bool follow_external = false;  ///< Export values in other files, too (OtherFiles).
  /// Called at rank 0 for each .npy or raw file when it is complete. May be empty.
  std::function<void(const ExportedFile&)> written;
};

struct ExportReport {
  std::optional<RepackReport> repacked;  ///< Set if complete datasets are exported as HDF5: that
                                         ///< export is a repack.
};

/// Write the selected data. An export to HDF5 is a repack with codec none, which carries over
/// everything else of the file. A slab in HDF5 becomes a separate netCDF-4 file.
/// For .npy and raw values, every rank reads its rows in pieces that fit its memory, complete rows
/// of chunks if possible. It writes them at their final position. Writing needs coordination only
/// at the start and the end: rank 0 creates each file under a temporary name, and renames it when
/// all is written.
/// Collective.
/// @error invalid_argument, bad_coverage  an option of the request.
/// @error unsupported  no numbers.  @error not_found, corrupt, already_exists, io_error, no_space
Result<ExportReport> export_files(const VerbRanks& ranks, const ExportRequest& request);

}  // namespace tailrace::verbs
