// Link order and dimension scales.

#include "container/hdf5_links.hpp"

#include <hdf5_hl.h>

#include <algorithm>
#include <unordered_set>

#include "container/hdf5_compat.hpp"
#include "container/hdf5_handle.hpp"
#include "container/input_conventions.hpp"

namespace tailrace {
namespace {

herr_t collect_name(hid_t, const char* name, const LinkInfo*, void* names) {
  // An exception must not cross HDF5's C frames.
  try {
    static_cast<std::vector<std::string>*>(names)->emplace_back(name);
  } catch (...) {
    return -1;
  }
  return 0;
}

}  // namespace

Status order_links(hid_t file, const std::string& group_path,
                   const std::vector<std::string>& names) {
  const std::string what = "order of group \"" + group_path + "\"";
  const Hdf5Id group(H5Gopen2(file, group_path.c_str(), H5P_DEFAULT));
  const Hdf5Id creation(H5Gget_create_plist(group.get()));
  unsigned order = 0;
  if (!creation.valid() || H5Pget_link_creation_order(creation.get(), &order) < 0) {
    return hdf5_failure(Code::internal, what);
  }
  if ((order & H5P_CRT_ORDER_TRACKED) == 0) return Status();

  const std::unordered_set<std::string> named(names.begin(), names.end());
  std::vector<std::string> present;
  if (iterate_links(group.get(), H5_INDEX_CRT_ORDER, collect_name, &present) < 0) {
    return hdf5_failure(Code::internal, what);
  }
  const std::unordered_set<std::string> there(present.begin(), present.end());
  std::erase_if(present, [&](const std::string& name) { return !named.contains(name); });
  std::vector<std::string> wanted = names;
  std::erase_if(wanted, [&](const std::string& name) { return !there.contains(name); });

  const auto first_wrong = std::mismatch(wanted.begin(), wanted.end(), present.begin());
  std::string aside = "tailrace_moving";
  while (there.contains(aside)) aside += "_";
  for (auto name = first_wrong.first; name != wanted.end(); ++name) {
    if (H5Lmove(group.get(), name->c_str(), group.get(), aside.c_str(), H5P_DEFAULT, H5P_DEFAULT) <
            0 ||
        H5Lmove(group.get(), aside.c_str(), group.get(), name->c_str(), H5P_DEFAULT, H5P_DEFAULT) <
            0) {
      return hdf5_failure(Code::internal, what + ", link \"" + *name + "\"");
    }
  }
  return Status();
}

Status attach_scale(hid_t file, const std::string& dataset_path, const std::string& scale_path,
                    unsigned dimension) {
  const Hdf5Id dataset(H5Dopen2(file, dataset_path.c_str(), H5P_DEFAULT));
  const Hdf5Id scale(H5Dopen2(file, scale_path.c_str(), H5P_DEFAULT));
  if (!dataset.valid() || !scale.valid() ||
      H5DSattach_scale(dataset.get(), scale.get(), dimension) < 0) {
    return hdf5_failure(Code::internal, "dimension scale \"" + scale_path + "\" of \"" +
                                            dataset_path + "\", dimension " +
                                            std::to_string(dimension));
  }
  return Status();
}

bool link_exists(hid_t file, const std::string& path) {
  if (path == "/") return true;
  // HDF5 fails, rather than says no, where a group on the way is missing.
  return link_exists(file, parent_path(path)) && H5Lexists(file, path.c_str(), H5P_DEFAULT) > 0;
}

}  // namespace tailrace
