// Reading them with plain HDF5 calls. Nothing here opens a plug-in: only headers are looked at.

#include "describe/field_attributes.hpp"

#include <cmath>
#include <limits>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "describe/hdf5_catalog.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_paths.hpp"
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

/// The bounds of components, and where these lie: as the file itself says (hdf5.md). What cannot be
/// read leaves the largest bound for all.
void read_component_bounds(hid_t dataset, const std::string& path, FieldAttributes& attributes) {
  constexpr hssize_t kMostBoxes = 1 << 24;  // A file may say anything.
  const Hdf5Id attribute(H5Aopen(dataset, "tailrace_component_bounds", H5P_DEFAULT));
  const Hdf5Id space(attribute.valid() ? H5Aget_space(attribute.get()) : H5I_INVALID_HID);
  const hssize_t n = space.valid() ? H5Sget_simple_extent_npoints(space.get()) : -1;
  if (n < 1 || n > kMostBoxes) return;
  std::vector<double> bounds(static_cast<std::size_t>(n));
  if (H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, bounds.data()) < 0) return;
  const std::string group = parent_path(path);
  const std::string number = path.substr(path.rfind('=') + 1);
  for (const std::string& name : {"data:offsets=" + number, std::string("data:offsets=0")}) {
    const std::string other = child_path(group, name);
    if (H5Lexists(dataset, other.c_str(), H5P_DEFAULT) <= 0) continue;
    const Hdf5Id offsets(H5Dopen2(dataset, other.c_str(), H5P_DEFAULT));
    const Hdf5Id extents(offsets.valid() ? H5Dget_space(offsets.get()) : H5I_INVALID_HID);
    const hssize_t n_offsets = extents.valid() ? H5Sget_simple_extent_npoints(extents.get()) : -1;
    if (n_offsets < 2 || n_offsets > kMostBoxes) continue;
    attributes.box_offsets.resize(static_cast<std::size_t>(n_offsets));
    if (H5Dread(offsets.get(), H5T_NATIVE_INT64, H5S_ALL, H5S_ALL, H5P_DEFAULT,
                attributes.box_offsets.data()) < 0) {
      attributes.box_offsets.clear();
      continue;
    }
    break;
  }
  bool whole = attributes.box_offsets.size() > 1 && attributes.box_offsets.front() == 0;
  for (std::size_t b = 1; whole && b < attributes.box_offsets.size(); ++b) {
    const std::int64_t n_values = attributes.box_offsets[b] - attributes.box_offsets[b - 1];
    whole = attributes.box_offsets[b] > attributes.box_offsets[b - 1] && n_values % n == 0;
  }
  if (!whole) attributes.box_offsets.clear();
  attributes.component_bounds = std::move(bounds);
}

Status read_own_attributes(hid_t dataset, const std::string& path, FieldAttributes& attributes) {
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
  if (H5Aexists(dataset, "tailrace_component_bounds") > 0) {
    attributes.bound = {BoundMode::abs, attributes.absolute_bound};
    read_component_bounds(dataset, path, attributes);
  }
  return number("tailrace_max_error", [&](double v) { attributes.max_error = v; });
}

}  // namespace

Result<std::vector<FieldAttributes>> read_field_attributes(
    const std::string& path, std::span<const std::string> field_paths) {
  const Hdf5Scope scope;
  std::vector<FieldAttributes> all(field_paths.size());
  if (H5Fis_hdf5(path.c_str()) <= 0) return all;
  TAILRACE_TAKE(const Hdf5Id file, open_plain_hdf5(path));
  for (std::size_t f = 0; f < field_paths.size(); ++f) {
    const std::string where = path + ": field \"" + field_paths[f] + "\"";
    const Hdf5Id dataset(H5Dopen2(file.get(), field_paths[f].c_str(), H5P_DEFAULT));
    if (!dataset.valid()) return hdf5_failure(Code::corrupt, where);
    TAILRACE_TRY(read_own_attributes(dataset.get(), field_paths[f], all[f]).within(where));
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

// --- Fill values and coordinates by convention.

namespace {

/// The value as an integer of type T, if it is one.
template <class T>
std::optional<double> whole_in(double value) {
  // Both limits are exact doubles: T's least is 0 or a power of two, and so is its greatest plus 1.
  const double least = static_cast<double>(std::numeric_limits<T>::min());
  const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!(value >= least && value < end) || value != std::floor(value)) return std::nullopt;
  return value;
}

/// A double equals at most one integer up to 2^53; beyond that the integer's neighbours share it.
template <class T>
bool exact_as_double(T value) {
  constexpr T kExactMax = T{1} << 53;
  if constexpr (std::is_signed_v<T>) return value >= -kExactMax && value <= kExactMax;
  return value <= kExactMax;
}

/// The nearest float; none if that would be infinite for a finite value.
std::optional<double> as_float(double value) {
  constexpr double kFloatMax = std::numeric_limits<float>::max();
  constexpr double kRoundsToInfinity = 0x1.ffffffp127;
  if (!std::isfinite(value) || std::fabs(value) <= kFloatMax) {
    return static_cast<double>(static_cast<float>(value));
  }
  if (std::fabs(value) < kRoundsToInfinity) return std::copysign(kFloatMax, value);
  return std::nullopt;
}

bool ends_with(std::string_view text, std::string_view end) {
  return text.size() >= end.size() && text.substr(text.size() - end.size()) == end;
}

}  // namespace

std::optional<double> fill_for_dtype(double value, DType dtype) {
  if (dtype == DType::f32) return as_float(value);
  if (dtype == DType::f64) return value;
  return visit_dtype(dtype, [&]<class T>() { return whole_in<T>(value); });
}

std::optional<double> fill_for_dtype(std::int64_t value, DType dtype) {
  if (!exact_as_double(value)) return std::nullopt;
  return fill_for_dtype(static_cast<double>(value), dtype);
}

std::optional<double> fill_for_dtype(std::uint64_t value, DType dtype) {
  if (!exact_as_double(value)) return std::nullopt;
  return fill_for_dtype(static_cast<double>(value), dtype);
}

void mark_coordinates(const std::vector<NamedCoordinates>& named,
                      std::vector<StoredDataset>& datasets) {
  std::unordered_map<std::string, StoredDataset*> by_path;
  for (StoredDataset& field : datasets) {
    if (!field.field) continue;
    by_path.emplace(field.path, &field);
    if (ends_with(field.path, "_bnds") || ends_with(field.path, "_bounds")) {
      field.coordinate = true;
    }
  }
  for (const NamedCoordinates& entry : named) {
    std::istringstream words(entry.names);
    for (std::string name; words >> name;) {
      for (std::string group = entry.group_path;; group = parent_path(group)) {
        const auto found = by_path.find(name[0] == '/' ? name : child_path(group, name));
        if (found != by_path.end()) found->second->coordinate = true;
        if (found != by_path.end() || group == "/") break;
      }
    }
  }
}

}  // namespace tailrace
