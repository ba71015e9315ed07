// What an HDF5 file says about how its datasets are stored: Tailrace's own attributes, and the
// storage and filters that any HDF5 file has. For `tailrace verify` and `tailrace info`.
//
// The attributes are those that the Writer sets (docs/format.md). A dataset without them is
// ordinary: then `by_tailrace` is false, and nothing is known about its error bound.

#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/error_bound.hpp"
#include "core/status.hpp"

namespace tailrace {

/// One filter of a dataset's pipeline, as its header names it.
struct StoredFilter {
  std::uint32_t filter_id = 0;
  std::string name;  ///< May be empty: old files name no filters.
  std::vector<std::uint32_t> client_data;
};

struct FieldAttributes {
  bool by_tailrace = false;    ///< tailrace_codec is there.
  std::string codec;           ///< "sz3"
  std::string codec_version;   ///< Plug-in file and version, or "built in".
  std::string version;         ///< Of the Tailrace that wrote it.
  ErrorBound bound;            ///< As asked.
  double absolute_bound = 0;   ///< As used, unit of the field; 0: kept exactly, or mode pw_rel.
  double pointwise_bound = 0;  ///< Mode pw_rel: fraction of each value; else 0.
  /// Largest measured error, if it was verified; under pw_rel as a fraction of the value.
  std::optional<double> max_error;

  std::string storage;                ///< "contiguous", "chunked", "compact", "virtual".
  std::vector<StoredFilter> filters;  ///< In the order in which encoding applies them.

  /// What max_error is held to: in its unit, 0 if the field is kept exactly.
  double bound_of_error() const { return pointwise_bound > 0 ? pointwise_bound : absolute_bound; }
};

/// Read them for `field_paths` of the HDF5 file `path`, in that order. A file that is not HDF5
/// gives empty entries. Not collective. One thread at a time per process (takes HDF5's lock).
/// @error corrupt  a dataset that is not there, or an attribute of another type than we write.
Result<std::vector<FieldAttributes>> read_field_attributes(
    const std::string& path, std::span<const std::string> field_paths);

/// "1.10.8": the version of the HDF5 library in this process.
std::string hdf5_library_version();

}  // namespace tailrace
