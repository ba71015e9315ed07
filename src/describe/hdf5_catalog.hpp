// Hdf5Catalog: every object of an input HDF5 file, in the file's own order, each visited once.
//
// Separates the fields (number arrays that codecs accept) from everything else, which hdf5_copy.cpp
// copies verbatim. An object that a second hard link reaches is listed as a duplicate of the first.
// Soft and external links are listed but not followed: nothing is read twice, and cycles end. Group
// order: creation order if the group tracks it (as netCDF-4 does), else by name.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "describe/stored_file.hpp"
#include "hdf5/dataset_describe.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Target of one link of the input.
struct Hdf5Node {
  enum class Kind : std::uint8_t {
    group,
    field,    ///< A dataset that the Writer creates.
    dataset,  ///< Any other dataset.
    named_type,
    duplicate,      ///< A further hard link to an object listed before; target: the object's first
                    ///< path.
    soft_link,      ///< target: the path as stored in the link.
    external_link,  ///< target: path inside target_file.
    unknown_link,   ///< A user-defined link class, or an object kind newer than this HDF5.
  };
  Kind kind = Kind::group;
  std::string path;
  std::string target;
  std::string target_file;
  std::uint64_t n_attributes = 0;
  bool has_comment = false;
  bool left_out = false;  ///< A dataset whose values lie in other files, which must not be read.
  bool virtual_mappings = false;  ///< Left out, but the mappings to its source files are copied.
};

struct Hdf5Catalog {
  std::vector<Hdf5Node> nodes;          ///< Parents before children; "/" first.
  std::vector<StoredDataset> datasets;  ///< All datasets, in the order of the nodes.
  bool netcdf4 = false;                 ///< Written by the netCDF-4 library.
  std::vector<std::string> remarks;     ///< Same as DatasetList::remarks.
  std::vector<std::string> unreadable;  ///< Same as DatasetList::unreadable.
};

/// Limit for the nesting depth of groups in a file whose fields are listed.
inline constexpr std::size_t kGroupDepthMax = 256;

/// List an open file. Not collective. Call with HDF5 locked. Cost: O(objects).
/// @param skip_unreadable  leave out objects that HDF5 cannot open, and list them in `unreadable`.
/// @error corrupt  an object that HDF5 cannot open; the message names its path.
/// @error unsupported  an object of a later HDF5; paths or groups beyond the limits (hdf5_walk.hpp,
/// kGroupDepthMax)
Result<Hdf5Catalog> read_hdf5_catalog(hid_t file, CatalogDetail detail,
                                      OtherFiles other_files = OtherFiles::leave_out,
                                      bool skip_unreadable = false);

/// True if a dimension scale's NAME attribute states that netCDF-4 has no variable for the
/// dimension.
bool is_dimension_without_variable(hid_t dataset);

}  // namespace tailrace
