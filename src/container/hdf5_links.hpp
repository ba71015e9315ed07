// What joins objects of the output to one another: the order of links, and dimension scales.

#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "container/hdf5_handle.hpp"
#include "core/status.hpp"

namespace tailrace {

/// Give the links of one group the order of `names` where the group tracks creation order; links
/// that are not named stay before them. Each link that stands wrong is renamed and renamed back,
/// which makes it the newest. Call with HDF5 locked. @error internal
Status order_links(hid_t file, const std::string& group_path,
                   const std::vector<std::string>& names);

/// Attach dataset `scale_path` as scale of one dimension of `dataset_path`, making it a scale if it
/// is none yet. Call with HDF5 locked. @error internal  with HDF5's reason.
Status attach_scale(hid_t file, const std::string& dataset_path, const std::string& scale_path,
                    unsigned dimension);

/// Whether a link of this path exists, and every group on the way. Call with HDF5 locked.
bool link_exists(hid_t file, const std::string& path);

}  // namespace tailrace
