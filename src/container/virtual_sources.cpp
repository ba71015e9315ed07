// The source files of virtual datasets.

#include "container/virtual_sources.hpp"

#include <unistd.h>

#include <cstdlib>
#include <unordered_set>

namespace tailrace {
namespace {

bool is_there(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }

/// The folder of a path with its slash; empty for a bare name.
std::string folder_of(const std::string& path) { return path.substr(0, path.rfind('/') + 1); }

}  // namespace

Status check_virtual_sources(hid_t dataset, const std::string& input_path) {
  const Hdf5Id creation(H5Dget_create_plist(dataset));
  if (!creation.valid() || H5Pget_layout(creation.get()) != H5D_VIRTUAL) return Status();
  std::size_t n_mappings = 0;
  if (std::getenv("HDF5_VDS_PREFIX") != nullptr ||
      H5Pget_virtual_count(creation.get(), &n_mappings) < 0) {
    return Status();
  }
  std::unordered_set<std::string> checked;
  for (std::size_t i = 0; i < n_mappings; ++i) {
    const ssize_t n_bytes = H5Pget_virtual_filename(creation.get(), i, nullptr, 0);
    if (n_bytes <= 0) continue;
    std::string name(static_cast<std::size_t>(n_bytes) + 1, '\0');
    H5Pget_virtual_filename(creation.get(), i, name.data(), name.size());
    name.resize(static_cast<std::size_t>(n_bytes));
    const bool this_file = name == ".";
    if (this_file || name.find('%') != std::string::npos || !checked.insert(name).second) continue;
    const std::string folder = folder_of(input_path);
    const std::string bare = name.substr(name.rfind('/') + 1);
    if (is_there(name) || is_there(folder + bare)) continue;
    if (name[0] != '/' && is_there(folder + name)) continue;
    return Status(Code::not_found, "its values lie in \"" + name +
                                       "\", which is missing (HDF5 would read fill values)");
  }
  return Status();
}

}  // namespace tailrace
