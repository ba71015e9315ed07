// Hdf5Catalog: every object of an input HDF5 file, in the file's own order, each visited once.
//
// Tells the fields (number arrays that codecs take) from everything else (carried over verbatim by
// hdf5_copy.cpp). An object that is reached by a second hard link is listed as a duplicate of
// the first; soft and external links are listed but not followed, so that nothing is read twice and
// cycles end. Group order: creation order where the group tracks it (as netCDF-4 does), else name.

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

/// What one link of the input leads to.
struct Hdf5Node {
  enum class Kind : std::uint8_t {
    group,
    field,    ///< A dataset that the Writer creates.
    dataset,  ///< Any other dataset.
    named_type,
    duplicate,      ///< A further hard link to an object listed before; target: that one's path.
    soft_link,      ///< target: the path as the link spells it.
    external_link,  ///< target: path inside target_file.
    unknown_link,   ///< A user-defined link class, or an object kind newer than this HDF5.
  };
  Kind kind = Kind::group;
  std::string path;
  std::string target;
  std::string target_file;
  std::uint64_t n_attributes = 0;
  bool has_comment = false;
  bool left_out = false;  ///< A dataset whose values lie in other files, which are not to be read.
  bool virtual_mappings = false;  ///< Left out, but where its values lie is to be kept.
};

struct Hdf5Catalog {
  std::vector<Hdf5Node> nodes;          ///< Parents before children; "/" first.
  std::vector<StoredDataset> datasets;  ///< All, in the order of the nodes.
  bool netcdf4 = false;                 ///< Written by the netCDF-4 library.
  std::vector<std::string> remarks;     ///< As DatasetList has.
  std::vector<std::string> unreadable;  ///< As DatasetList has.
};

/// Groups within groups that are listed with their fields.
inline constexpr std::size_t group_depth_max = 256;

/// List an open file. Not collective. Call with HDF5 locked. Cost: O(objects).
/// @param skip_unreadable  leave out objects that HDF5 cannot open, and name them.
/// @error corrupt  an object that HDF5 cannot open; the message names its path.
/// @error unsupported  the same, of a later HDF5; paths or groups beyond the limits
/// (hdf5_walk.hpp, group_depth_max)
Result<Hdf5Catalog> read_hdf5_catalog(hid_t file, Asked asked,
                                      OtherFiles other_files = OtherFiles::leave_out,
                                      bool skip_unreadable = false);

/// Whether a dimension scale's NAME attribute says that the dimension has no variable in netCDF-4.
bool is_dimension_without_variable(hid_t dataset);

}  // namespace tailrace
