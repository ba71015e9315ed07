// What joins objects to one another: the order of links, dimension scales, and the attributes of
// netCDF-4's own that number dimensions.

#pragma once

#include <string>
#include <utility>
#include <vector>

#include "core/status.hpp"
#include "hdf5/hdf5_handle.hpp"

namespace tailrace {

/// Give the links of one group the order of `names` where the group tracks creation order; links
/// that are not named stay before them. Each link that stands wrong is renamed and renamed back,
/// which makes it the newest. Call with HDF5 locked. @error internal
Status order_links(hid_t file, const std::string& group_path,
                   const std::vector<std::string>& names);

/// Attach dataset `scale` as scale of one dimension of `dataset`, making it a scale if it is none
/// yet. Call with HDF5 locked. @error internal  with HDF5's reason; also where an id is none.
Status attach_scale(hid_t dataset, hid_t scale, unsigned dimension);
/// The same by their paths.
Status attach_scale(hid_t file, const std::string& dataset_path, const std::string& scale_path,
                    unsigned dimension);

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
