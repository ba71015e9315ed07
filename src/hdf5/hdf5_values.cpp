// Selections and memory types for H5Dwrite.

#include "hdf5/hdf5_values.hpp"

#include <hdf5.h>

#include <vector>

#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_plain_file.hpp"
#include "hdf5/hdf5_properties.hpp"
#include "hdf5/stub_filters.hpp"

namespace tailrace {

namespace {

/// Write the slab's elements, which are dense in `buffer`.
Status write_slab(std::int64_t hdf5_id, const std::string& path, const Slab& slab, hid_t memory,
                  const void* buffer) {
  const std::string what = "dataset \"" + path + "\"";
  const Hdf5Id dataset(H5Dopen2(hdf5_id, path.c_str(), H5P_DEFAULT));
  if (!dataset.valid()) return hdf5_open_failure(what);
  const Hdf5Id in_file(H5Dget_space(dataset.get()));
  if (!in_file.valid()) {
    return hdf5_failure(Code::internal, what + ": its extents cannot be read");
  }
  const std::vector<hsize_t> start(slab.start.begin(), slab.start.end());
  const std::vector<hsize_t> count(slab.count.begin(), slab.count.end());
  std::vector<hsize_t> stride(slab.rank(), 1);
  for (std::size_t d = 0; d < slab.rank(); ++d) stride[d] = slab.stride_of(d);
  const Hdf5Id in_memory(slab.rank() == 0
                             ? H5Screate(H5S_SCALAR)
                             : H5Screate_simple(int(count.size()), count.data(), nullptr));
  if (slab.rank() > 0 && H5Sselect_hyperslab(in_file.get(), H5S_SELECT_SET, start.data(),
                                             stride.data(), count.data(), nullptr) < 0) {
    return hdf5_failure(Code::internal, what + ": slab " + slab_text(slab) + " cannot be selected");
  }
  const auto write = [&] {
    return H5Dwrite(dataset.get(), memory, in_memory.get(), in_file.get(), H5P_DEFAULT, buffer);
  };
  if (call_with_filters(dataset.get(), write) < 0) {
    return hdf5_failure(Code::internal, what + ": slab " + slab_text(slab) + " cannot be written");
  }
  return Status();
}

}  // namespace

Status write_dataset_texts(std::int64_t hdf5_id, const std::string& path, const Slab& slab,
                           std::span<const std::string> texts) {
  const Hdf5Scope scope;
  const Hdf5Id type(H5Tcopy(H5T_C_S1));
  if (!type.valid() || H5Tset_size(type.get(), H5T_VARIABLE) < 0) {
    return hdf5_failure(Code::internal,
                        "the type for strings of variable length cannot be created");
  }
  // HDF5 does not convert character sets: use the dataset's.
  const Hdf5Id dataset(H5Dopen2(hdf5_id, path.c_str(), H5P_DEFAULT));
  if (!dataset.valid()) return hdf5_open_failure("dataset \"" + path + "\"");
  const Hdf5Id stored(H5Dget_type(dataset.get()));
  if (stored.valid() && H5Tget_class(stored.get()) == H5T_STRING) {
    H5Tset_cset(type.get(), H5Tget_cset(stored.get()));
  }
  std::vector<const char*> pointers;
  pointers.reserve(texts.size());
  for (const std::string& text : texts) pointers.push_back(text.c_str());
  return write_slab(hdf5_id, path, slab, type.get(), pointers.data());
}

Status write_dataset_values(std::int64_t hdf5_id, const std::string& path, const Slab& slab,
                            DType dtype, bool characters, std::span<const std::byte> values) {
  const Hdf5Scope scope;
  const hid_t type = characters ? H5T_C_S1 : hdf5_native_type(dtype);
  return write_slab(hdf5_id, path, slab, type, values.data());
}

}  // namespace tailrace
