// Reading them with plain HDF5 calls. Nothing here opens a plug-in: only headers are looked at.

#include "describe/field_attributes.hpp"

#include <array>

#include "describe/hdf5_catalog.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_plain_file.hpp"

namespace tailrace {
namespace {

/// The number in a scalar attribute; no value if there is none.
Result<std::optional<double>> number_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return std::optional<double>();
  const Hdf5Id attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Hdf5Id space(attribute.valid() ? H5Aget_space(attribute.get()) : H5I_INVALID_HID);
  double value = 0;
  if (!space.valid() || H5Sget_simple_extent_npoints(space.get()) != 1 ||
      H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, &value) < 0) {
    return hdf5_failure(Code::corrupt, std::string("attribute ") + name + " is no single number");
  }
  return std::optional<double>(value);
}

BoundMode bound_mode_of(const std::string& name) {
  for (const BoundMode mode :
       {BoundMode::abs, BoundMode::rel, BoundMode::psnr, BoundMode::pw_rel}) {
    if (bound_mode_name(mode) == name) return mode;
  }
  return BoundMode::none;
}

Status read_own_attributes(hid_t dataset, FieldAttributes& attributes) {
  attributes.codec = hdf5_text_attribute(dataset, "tailrace_codec");
  attributes.by_tailrace = !attributes.codec.empty();
  if (!attributes.by_tailrace) return Status();
  attributes.codec_version = hdf5_text_attribute(dataset, "tailrace_codec_version");
  attributes.version = hdf5_text_attribute(dataset, "tailrace_version");
  attributes.bound.mode = bound_mode_of(hdf5_text_attribute(dataset, "tailrace_bound_mode"));
  const auto number = [&](const char* name, auto store) {
    Result<std::optional<double>> value = number_attribute(dataset, name);
    if (value.ok() && value->has_value()) store(**value);
    return value.status();
  };
  TAILRACE_TRY(number("tailrace_bound_asked", [&](double v) { attributes.bound.value = v; }));
  attributes.pointwise_bound = pointwise_bound(attributes.bound);
  TAILRACE_TRY(number("tailrace_absolute_bound", [&](double v) { attributes.absolute_bound = v; }));
  return number("tailrace_max_error", [&](double v) { attributes.max_error = v; });
}

Status read_storage(hid_t dataset, FieldAttributes& attributes) {
  const Hdf5Id creation(H5Dget_create_plist(dataset));
  if (!creation.valid()) return hdf5_failure(Code::corrupt, "no creation properties");
  switch (H5Pget_layout(creation.get())) {
    case H5D_CONTIGUOUS: attributes.storage = "contiguous"; break;
    case H5D_CHUNKED: attributes.storage = "chunked"; break;
    case H5D_COMPACT: attributes.storage = "compact"; break;
    case H5D_VIRTUAL: attributes.storage = "virtual"; break;
    default: attributes.storage = "unknown"; break;
  }
  const int n_filters = H5Pget_nfilters(creation.get());
  for (int f = 0; f < n_filters; ++f) {
    // HDF5 fills at most the room it is given, and says how much there is: so ask twice.
    unsigned flags = 0;
    unsigned config = 0;
    std::array<char, 257> name{};
    std::size_t n_client_data = 0;
    const auto index = static_cast<unsigned>(f);
    H5Z_filter_t id = H5Pget_filter2(creation.get(), index, &flags, &n_client_data, nullptr,
                                     name.size() - 1, name.data(), &config);
    StoredFilter filter;
    filter.client_data.resize(n_client_data);
    if (id >= 0 && n_client_data > 0) {
      id = H5Pget_filter2(creation.get(), index, &flags, &n_client_data, filter.client_data.data(),
                          name.size() - 1, name.data(), &config);
    }
    if (id < 0) return hdf5_failure(Code::corrupt, "filter " + std::to_string(f));
    filter.filter_id = static_cast<std::uint32_t>(id);
    filter.name = name.data();
    attributes.filters.push_back(std::move(filter));
  }
  return Status();
}

}  // namespace

Result<std::vector<FieldAttributes>> read_field_attributes(
    const std::string& path, std::span<const std::string> field_paths) {
  const Hdf5Scope scope;
  std::vector<FieldAttributes> all(field_paths.size());
  if (H5Fis_hdf5(path.c_str()) <= 0) return all;
  const Result<Hdf5Id> opened = open_plain_hdf5(path);
  if (!opened.ok()) return opened.status();
  const Hdf5Id& file = *opened;
  for (std::size_t f = 0; f < field_paths.size(); ++f) {
    const std::string where = path + ": field \"" + field_paths[f] + "\"";
    const Hdf5Id dataset(H5Dopen2(file.get(), field_paths[f].c_str(), H5P_DEFAULT));
    if (!dataset.valid()) return hdf5_failure(Code::corrupt, where);
    TAILRACE_TRY(read_own_attributes(dataset.get(), all[f]).within(where));
    TAILRACE_TRY(read_storage(dataset.get(), all[f]).within(where));
  }
  return all;
}

std::string hdf5_library_version() {
  const Hdf5Scope scope;
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  if (H5get_libversion(&major, &minor, &release) < 0) return "unknown";
  return std::to_string(major) + "." + std::to_string(minor) + "." + std::to_string(release);
}

}  // namespace tailrace
