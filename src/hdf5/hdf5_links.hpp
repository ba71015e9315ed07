// What joins objects to one another: the order of links, dimension scales, and the attributes of
// netCDF-4's own that number dimensions.

#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Give the links of one group the order of `names` where the group tracks creation order; links
/// that are not named stay before them. Each link that stands wrong is renamed and renamed back,
/// which makes it the newest. Call with HDF5 locked. @error internal
Status order_links(hid_t file, const std::string& group_path,
                   const std::vector<std::string>& names);

/// One entry of a scale's REFERENCE_LIST: a dataset, and which of its dimensions the scale is for.
struct ScaleUser {
  hobj_ref_t dataset;
  unsigned dimension;
};

/// The scales of each dimension of a dataset, by their paths.
using DimensionScales = std::vector<std::vector<std::string>>;

/// Attaches dimension scales to datasets. H5DSattach_scale() rewrites the list of a scale's users
/// with each of them, so that n datasets cost n^2; here each list is written once, by finish().
/// Call with HDF5 locked; what it attaches to must stay in its place until then.
class ScaleAttacher {
 public:
  explicit ScaleAttacher(hid_t file) : file_(file) {}
  /// Make the named datasets scales, if they are none yet, of an open dataset; `path` is for what
  /// is said of it. @error invalid_argument  it is a scale itself; internal  with HDF5's reason.
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

/// What ties a dataset to dimension scales, in either role; paths and dimension numbers.
struct ScaleTies {
  std::vector<std::pair<std::string, unsigned>> scales;  ///< That it has.
  std::vector<std::pair<std::string, unsigned>> users;   ///< Whose scale it is.
};

/// Untie an open dataset, and say from what: it is about to be replaced. Call with HDF5 locked.
Result<ScaleTies> untie_scales(hid_t file, hid_t dataset, const std::string& path);

/// Tie the dataset that has taken its place. Call with HDF5 locked.
Status tie_scales(hid_t file, const std::string& path, const ScaleTies& ties);

/// The names of a group's links, in creation order where the group tracks it. @error internal
Result<std::vector<std::string>> link_names(hid_t file, const std::string& group_path);

/// The names of an object's attributes, in the order in which they were made where the object
/// tracks it. Call with HDF5 locked. @error corrupt  they cannot be listed; names `owner`.
Result<std::vector<std::string>> attribute_names(hid_t object, const std::string& owner);

/// An attribute of netCDF-4's own: 32-bit whole numbers, in place of one of this name.
Status write_own_numbers(hid_t object, const char* name, const std::vector<int>& numbers,
                         bool scalar);
/// Read one; empty if there is none, or something else has its name.
std::vector<int> read_own_numbers(hid_t object, const char* name);

/// Whether a link of this path exists, and every group on the way. Call with HDF5 locked.
bool link_exists(hid_t file, const std::string& path);

}  // namespace tailrace
