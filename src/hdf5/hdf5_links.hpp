// Relations between objects: the order of links, dimension scales, and netCDF-4's internal
// attributes that number dimensions.

#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Reorder the links of one group to the order of `names`, if the group tracks creation order;
/// other links stay before them. Each misplaced link is renamed and renamed back, which makes it
/// the newest. Call with HDF5 locked. @error internal
Status order_links(hid_t file, const std::string& group_path,
                   const std::vector<std::string>& names);

/// One entry of a scale's REFERENCE_LIST: a dataset, and the dimension that uses the scale.
struct ScaleUser {
  hobj_ref_t dataset;
  unsigned dimension;
};

/// Paths of the scales of each dimension of a dataset.
using DimensionScales = std::vector<std::vector<std::string>>;

/// Attaches dimension scales to datasets. H5DSattach_scale() rewrites the list of a scale's users
/// on every call, so that n datasets cost n^2. This class writes each list once, in finish(). Call
/// with HDF5 locked. The datasets must not move before finish().
class ScaleAttacher {
 public:
  explicit ScaleAttacher(hid_t file) : file_(file) {}
  /// Attach scales to an open dataset; the named datasets become scales if they are not yet. `path`
  /// is for messages. @error invalid_argument  the dataset is a scale itself; internal  with HDF5's
  /// reason
  Status attach(hid_t dataset, const std::string& path, const DimensionScales& scales);
  Status finish();

 private:
  struct Scale {
    Hdf5Id dataset;
    hobj_ref_t reference = 0;
    std::vector<ScaleUser> new_users;
  };
  Result<Scale*> scale_at(const std::string& path);
  static bool attach_first(hid_t dataset, const std::vector<std::vector<Scale*>>& scales);

  hid_t file_;
  std::map<std::string, Scale> scales_;
};

/// Relations between a dataset and dimension scales, in either role; paths and dimension numbers.
struct ScaleTies {
  std::vector<std::pair<std::string, unsigned>> scales;  ///< The dataset's scales.
  std::vector<std::pair<std::string, unsigned>> users;   ///< Datasets that use it as a scale.
};

/// Detach an open dataset from its scales and users, before it is replaced. @returns the relations.
/// Call with HDF5 locked.
Result<ScaleTies> untie_scales(hid_t file, hid_t dataset, const std::string& path);

/// Attach the replacement dataset at `path` to the same scales and users. Call with HDF5 locked.
Status tie_scales(hid_t file, const std::string& path, const ScaleTies& ties);

/// The names of a group's links, in creation order where the group tracks it. @error internal
Result<std::vector<std::string>> link_names(hid_t file, const std::string& group_path);

/// Names of an object's attributes, in creation order if the object tracks it. Call with HDF5
/// locked. @error corrupt  they cannot be listed; the text names `owner`
Result<std::vector<std::string>> attribute_names(hid_t object, const std::string& owner);

/// Write a netCDF-4 internal attribute of 32-bit integers, replacing any attribute of this name.
Status write_own_numbers(hid_t object, const char* name, const std::vector<int>& numbers,
                         bool scalar);
/// Read such an attribute; empty if it does not exist or has another form.
std::vector<int> read_own_numbers(hid_t object, const char* name);

/// True if a link with this path exists, and every group on the way. Call with HDF5 locked.
bool link_exists(hid_t file, const std::string& path);

}  // namespace tailrace
