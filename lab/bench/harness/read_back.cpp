// Reads an output back by stock HDF5, as a user's reader would: default file driver, HDF5's filter
// pipeline, and the plug-ins that HDF5 finds. Codec trz is registered.

#include <hdf5.h>
#include <sys/stat.h>

#include "filters/own_filters.hpp"
#include "hdf5/filter_plugins.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "method.hpp"

namespace tailrace::bench {
namespace {

/// Make HDF5 search Tailrace's plug-in folders. Runs once per process.
void share_plugin_folders(const std::string& plugin_path) {
  static bool done = false;
  if (done) return;
  done = true;
  for (const std::string& folder : plugin_folders(plugin_path)) H5PLappend(folder.c_str());
}

Status read_field(hid_t file, const BenchField& field, bool is_root, bool exact, ReadBack& found) {
  const Hdf5Id dataset(H5Dopen2(file, field.path.c_str(), H5P_DEFAULT));
  if (!dataset.valid()) return hdf5_failure(Code::corrupt, "opening \"" + field.path + "\"");
  const std::vector<hsize_t> start(field.box.start.begin(), field.box.start.end());
  const std::vector<hsize_t> count(field.box.count.begin(), field.box.count.end());
  const Hdf5Id space(H5Dget_space(dataset.get()));
  const Hdf5Id memory(H5Screate_simple(static_cast<int>(count.size()), count.data(), nullptr));
  H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr);
  Buffer values(field.block_bytes());
  if (!values.allocated()) return Status(Code::out_of_memory, "not enough memory to read a block");
  const hid_t type = field.dtype == DType::f32 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  if (H5Dread(dataset.get(), type, memory.get(), space.get(), H5P_DEFAULT, values.data()) < 0) {
    return hdf5_failure(Code::corrupt, "reading \"" + field.path + "\"");
  }
  compare_block(field, exact, field.values.bytes(), values.bytes(), found);
  if (is_root) found.encoded_bytes += H5Dget_storage_size(dataset.get());
  return Status();
}

}  // namespace

Result<ReadBack> read_back_with_hdf5(const BenchContext& context, const std::string& path,
                                     bool exact) {
  const Hdf5Scope scope;
  share_plugin_folders(context.options.plugin_path);
  TAILRACE_TRY(hdf5::register_own_filters());
  ReadBack found;
  const Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  if (!file.valid()) return hdf5_failure(Code::corrupt, "opening \"" + path + "\"");
  for (const BenchField& field : context.work.fields) {
    TAILRACE_TRY(read_field(file.get(), field, context.comm.is_root(), exact, found));
  }
  struct stat facts {};
  if (context.comm.is_root() && ::stat(path.c_str(), &facts) == 0) {
    found.file_bytes = static_cast<std::uint64_t>(facts.st_size);
  }
  return found;
}

}  // namespace tailrace::bench
