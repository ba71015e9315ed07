// Reads attributes with plain HDF5 calls. Only headers are read, so no plug-in is loaded.

#include "describe/field_attributes.hpp"

#include <nlohmann/json.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <sstream>
#include <string_view>
#include <unordered_map>

#include "core/encoding_notes.hpp"
#include "describe/hdf5_catalog.hpp"
#include "hdf5/hdf5_compat.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "hdf5/hdf5_paths.hpp"
#include "hdf5/hdf5_plain_file.hpp"

namespace tailrace {
namespace {

/// Number in a scalar attribute; no value if the attribute does not exist.
Result<std::optional<double>> number_attribute(hid_t object, const char* name) {
  if (H5Aexists(object, name) <= 0) return std::optional<double>();
  const Hdf5Id attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Hdf5Id space(attribute.valid() ? H5Aget_space(attribute.get()) : H5I_INVALID_HID);
  double value = 0;
  if (!space.valid() || H5Sget_simple_extent_npoints(space.get()) != 1 ||
      H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, &value) < 0) {
    return hdf5_failure(Code::corrupt,
                        std::string("attribute \"") + name + "\" is not a single number");
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

/// All numbers of an attribute; empty if it does not exist or has more than `most`.
template <class T>
std::vector<T> numbers_attribute(hid_t object, const char* name, hid_t type, hssize_t most) {
  if (H5Aexists(object, name) <= 0) return {};
  const Hdf5Id attribute(H5Aopen(object, name, H5P_DEFAULT));
  const Hdf5Id space(attribute.valid() ? H5Aget_space(attribute.get()) : H5I_INVALID_HID);
  const hssize_t n = space.valid() ? H5Sget_simple_extent_npoints(space.get()) : -1;
  if (n < 1 || n > most) return {};
  std::vector<T> numbers(static_cast<std::size_t>(n));
  if (H5Aread(attribute.get(), type, numbers.data()) < 0) return {};
  return numbers;
}

/// Read the components' bounds and positions. Without positions, the largest bound applies to all.
void read_component_bounds(hid_t dataset, FieldAttributes& attributes) {
  constexpr hssize_t kMost = 1 << 17;  // Untrusted input.
  constexpr std::uint64_t kMostBoxes = 1U << 20;
  constexpr auto kMostValues = static_cast<std::uint64_t>(INT64_MAX);
  attributes.component_bounds =
      numbers_attribute<double>(dataset, kComponentBoundsAttribute, H5T_NATIVE_DOUBLE, kMost);
  const auto runs =
      numbers_attribute<std::uint64_t>(dataset, kComponentRunsAttribute, H5T_NATIVE_UINT64, kMost);
  const auto fits = [&](double bound) { return bound >= 0 && bound <= attributes.absolute_bound; };
  if (!std::ranges::all_of(attributes.component_bounds, fits)) attributes.component_bounds.clear();
  const std::uint64_t n = attributes.component_bounds.size();
  if (n == 0 || runs.size() % 2 != 0) return;
  std::vector<std::int64_t> offsets{0};
  std::uint64_t end = 0;
  for (std::size_t r = 0; r < runs.size(); r += 2) {
    const std::uint64_t n_boxes = runs[r];
    const std::uint64_t n_cells = runs[r + 1];
    if (n_cells == 0 || n_cells > kMostValues / n) return;
    if (n_boxes > kMostBoxes - offsets.size() || n_boxes > (kMostValues - end) / (n * n_cells))
      return;
    for (std::uint64_t b = 0; b < n_boxes; ++b) {
      end += n * n_cells;
      offsets.push_back(static_cast<std::int64_t>(end));
    }
  }
  if (offsets.size() > 1) attributes.box_offsets = std::move(offsets);
}

/// Apply the file's note to a dataset without notes: the note states that it is exact.
FieldAttributes attributes_by_file_note(hid_t dataset, const std::string& version) {
  FieldAttributes attributes;
  if (version.empty()) return attributes;
  const Hdf5Id list(H5Dget_create_plist(dataset));
  StoredForm form;
  if (list.valid() && H5Pget_layout(list.get()) == H5D_CHUNKED) {
    form.kind = StoredForm::Kind::chunked;
  }
  const int n_filters = form.kind == StoredForm::Kind::chunked ? H5Pget_nfilters(list.get()) : 0;
  for (int f = 0; f < n_filters; ++f) {
    std::size_t n_values = 0;
    const H5Z_filter_t filter = H5Pget_filter2(list.get(), static_cast<unsigned>(f), nullptr,
                                               &n_values, nullptr, 0, nullptr, nullptr);
    form.filters.emplace_back().filter_id = static_cast<std::uint32_t>(filter);
  }
  attributes.by_tailrace = covered_by_file_note(form);
  if (attributes.by_tailrace) attributes.version = version;
  return attributes;
}

/// Version in the file's note; empty if the file has no note.
std::string version_in_note(hid_t file) {
  const auto note =
      nlohmann::json::parse(hdf5_text_attribute(file, kFileNoteAttribute), nullptr, false);
  const bool has_version =
      note.is_object() && note.contains("version") && note["version"].is_string();
  return has_version ? note["version"].get<std::string>() : "";
}

/// Parse the guard attribute, an untrusted text of any length. The caller must know if it is
/// invalid, so that it does not check or extend the dataset without its guards.
void read_guards(const std::string& text, FieldAttributes& attributes) {
  Result<Guards> guards = parse_guards(text.substr(0, kGuardsTextBytesMax));
  if (guards.ok() && text.size() <= kGuardsTextBytesMax) {
    attributes.guards = std::move(*guards);
  } else {
    attributes.guards_unknown = text.empty() ? "(no text)" : text.substr(0, 80);
    for (char& c : attributes.guards_unknown) c = c >= ' ' && c <= '~' ? c : '?';  // It is shown.
  }
}

Status read_own_attributes(hid_t dataset, FieldAttributes& attributes) {
  attributes.codec = hdf5_text_attribute(dataset, kCodecAttribute);
  attributes.by_tailrace = !attributes.codec.empty();
  if (!attributes.by_tailrace) return Status();
  LossFacts facts;
  facts.recorded = hdf5_text_attribute(dataset, kLossesAttribute);
  if (!facts.recorded.empty()) attributes.losses = losses_of(facts);
  if (hdf5_text_attribute(dataset, kBoundModeAttribute) == kUnknownWord) {
    FieldAttributes unknown;
    unknown.losses_unknown = true;
    unknown.losses = std::move(attributes.losses);
    if (attributes.codec != kUnknownWord) unknown.codec = attributes.codec;
    attributes = std::move(unknown);
    return Status();
  }
  attributes.codec_version = hdf5_text_attribute(dataset, kCodecVersionAttribute);
  if (attributes.codec_version.empty()) attributes.codec_version = kBuiltInCodecVersion;
  attributes.version = hdf5_text_attribute(dataset, kVersionAttribute);
  attributes.bound.mode = bound_mode_of(hdf5_text_attribute(dataset, kBoundModeAttribute));
  const auto number = [&](const char* name, auto store) {
    Result<std::optional<double>> value = number_attribute(dataset, name);
    if (value.ok() && value->has_value()) store(**value);
    return value.status();
  };
  TAILRACE_TRY(number(kBoundAskedAttribute, [&](double v) { attributes.bound.value = v; }));
  attributes.pointwise_bound = pointwise_bound(attributes.bound);
  TAILRACE_TRY(number(kAbsoluteBoundAttribute, [&](double v) { attributes.absolute_bound = v; }));
  if (H5Aexists(dataset, kGuardAttribute) > 0) {
    read_guards(hdf5_text_attribute(dataset, kGuardAttribute), attributes);
  }
  if (H5Aexists(dataset, kComponentBoundsAttribute) > 0) {
    attributes.bound = {BoundMode::abs, attributes.absolute_bound};
    read_component_bounds(dataset, attributes);
  }
  return number(kMaxErrorAttributeName, [&](double v) { attributes.max_error = v; });
}

}  // namespace

Result<std::vector<FieldAttributes>> read_field_attributes(
    const std::string& path, std::span<const std::string> field_paths) {
  const Hdf5Scope scope;
  std::vector<FieldAttributes> all(field_paths.size());
  if (H5Fis_hdf5(path.c_str()) <= 0) return all;
  TAILRACE_TAKE(const Hdf5Id file, open_plain_hdf5(path));
  const std::string note = version_in_note(file.get());
  for (std::size_t f = 0; f < field_paths.size(); ++f) {
    const std::string where = path + ": field \"" + field_paths[f] + "\"";
    const Hdf5Id dataset(H5Dopen2(file.get(), field_paths[f].c_str(), H5P_DEFAULT));
    if (!dataset.valid()) return hdf5_failure(Code::corrupt, where + " cannot be opened");
    TAILRACE_TRY(read_own_attributes(dataset.get(), all[f]).within(where));
    if (!all[f].by_tailrace && !all[f].losses_unknown) {
      all[f] = attributes_by_file_note(dataset.get(), note);
    }
    if (all[f].version.empty() && all[f].by_tailrace) all[f].version = note;
    const auto covered = numbers_attribute<std::uint64_t>(dataset.get(), "tailrace_covered_cells",
                                                          H5T_NATIVE_UINT64, 2);
    if (covered.size() == 2) all[f].covered = {covered[0], covered[1]};
  }
  return all;
}

namespace {

/// True if all attributes exist that the mode of the bound requires, with known words and valid
/// numbers.
bool bounds_are_whole(hid_t dataset, const FieldAttributes& attributes) {
  const BoundMode mode = attributes.bound.mode;
  const auto has = [&](const char* name) { return H5Aexists(dataset, name) > 0; };
  if (hdf5_text_attribute(dataset, kBoundModeAttribute) != bound_mode_name(mode)) return false;
  if (mode != BoundMode::none && !has(kBoundAskedAttribute)) return false;
  if (mode != BoundMode::pw_rel && !has(kAbsoluteBoundAttribute)) return false;
  // Comparisons with a NaN are false.
  return attributes.absolute_bound >= 0 && attributes.max_error.value_or(0) >= 0 &&
         !std::isnan(attributes.bound.value);
}

}  // namespace

RowNotes read_row_notes(std::int64_t dataset) {
  RowNotes notes;
  // Almost all datasets end here.
  if (H5Aexists(dataset, kCodecAttribute) <= 0) return notes;
  notes.silent = false;
  FieldAttributes attributes;
  notes.recorded = read_own_attributes(dataset, attributes).ok() && attributes.by_tailrace &&
                   bounds_are_whole(dataset, attributes) && attributes.guards_unknown.empty() &&
                   attributes.component_bounds.empty() &&
                   H5Aexists(dataset, "tailrace_covered_cells") <= 0;
  if (!notes.recorded) return notes;
  notes.as_requested = attributes.codec + ", " + error_bound_text(attributes.bound);
  if (attributes.losses) {
    notes.as_requested += ", " + losses_text(*attributes.losses);
  } else {
    notes.codec = attributes.codec;
  }
  notes.absolute_bound = attributes.absolute_bound;
  notes.max_error = attributes.max_error;
  notes.guards = attributes.guards;
  return notes;
}

namespace {

/// Read the elements of a text attribute. @param n  number of elements
Result<std::vector<std::string>> attribute_texts(hid_t attribute, hid_t type, std::size_t n) {
  std::vector<std::string> texts;
  const std::size_t element_bytes = H5Tget_size(type);
  const bool variable = H5Tis_variable_str(type) > 0;
  if (!variable && element_bytes > kAttributeTextBytesMax) return texts;
  std::vector<char> bytes(n * element_bytes);
  if (n == 0) return texts;
  if (H5Aread(attribute, type, bytes.data()) < 0) return hdf5_failure(Code::corrupt, "its value");
  for (std::size_t i = 0; i < n; ++i) {
    const char* text = bytes.data() + i * element_bytes;
    std::size_t length = variable ? 0 : strnlen(text, element_bytes);
    if (variable) {
      std::memcpy(&text, bytes.data() + i * element_bytes, sizeof text);
      length = text == nullptr ? 0 : strnlen(text, kAttributeTextBytesMax);
    } else {
      while (length > 0 && text[length - 1] == ' ') --length;  // Fortran's padding.
    }
    texts.emplace_back(text == nullptr ? "" : text, length);
  }
  if (variable) {
    const Hdf5Id space(H5Aget_space(attribute));
    reclaim_variable_length(type, space.get(), bytes.data());
  }
  return texts;
}

Result<StatedAttribute> stated_attribute(hid_t object, const std::string& name) {
  StatedAttribute value;
  value.name = name;
  const Hdf5Id attribute(H5Aopen(object, name.c_str(), H5P_DEFAULT));
  const Hdf5Id type(attribute.valid() ? H5Aget_type(attribute.get()) : H5I_INVALID_HID);
  const Hdf5Id space(attribute.valid() ? H5Aget_space(attribute.get()) : H5I_INVALID_HID);
  const hssize_t n = space.valid() ? H5Sget_simple_extent_npoints(space.get()) : -1;
  if (!type.valid() || n < 0) return hdf5_failure(Code::corrupt, "its type or extent");
  if (n > static_cast<hssize_t>(kAttributeElementsMax)) return value;
  const H5T_class_t kind = H5Tget_class(type.get());
  if (kind == H5T_STRING) {
    TAILRACE_TAKE(value.texts,
                  attribute_texts(attribute.get(), type.get(), static_cast<std::size_t>(n)));
  } else if ((kind == H5T_INTEGER || kind == H5T_FLOAT) && n > 0) {
    value.numbers.resize(static_cast<std::size_t>(n));
    if (H5Aread(attribute.get(), H5T_NATIVE_DOUBLE, value.numbers.data()) < 0) {
      return hdf5_failure(Code::corrupt, "its value");
    }
  }
  return value;
}

}  // namespace

Result<std::vector<StatedAttribute>> read_stated_attributes(std::int64_t object,
                                                            AttributeFilter wanted) {
  struct Names {
    AttributeFilter wanted;
    std::vector<std::string> names;
  } found{wanted, {}};
  const auto note = [](hid_t, const char* name, const H5A_info_t*, void* data) -> herr_t {
    auto& names = *static_cast<Names*>(data);
    if (names.wanted(name)) names.names.emplace_back(name);
    return 0;
  };
  if (H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, nullptr, note, &found) < 0) {
    return hdf5_failure(Code::corrupt, "attributes cannot be listed");
  }
  std::vector<StatedAttribute> values;
  for (const std::string& name : found.names) {
    Result<StatedAttribute> value = stated_attribute(object, name);
    if (!value.ok()) return value.status().within("attribute \"" + name + "\" cannot be read");
    values.push_back(std::move(*value));
  }
  return values;
}

bool covered_by_file_note(const StoredForm& form) {
  return form.kind == StoredForm::Kind::chunked &&
         std::ranges::none_of(
             form.filters, [](const FilterSpec& filter) { return always_lossy(filter.filter_id); });
}

bool has_file_note(std::int64_t file) { return !version_in_note(file).empty(); }

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

/// Check that the value is an integer of type T.
template <class T>
std::optional<double> whole_in(double value) {
  // Both limits are exact doubles: the minimum of T is 0 or a power of two, and so is its maximum
  // plus 1.
  const double least = static_cast<double>(std::numeric_limits<T>::min());
  const double end = std::ldexp(1.0, std::numeric_limits<T>::digits);
  if (!(value >= least && value < end) || value != std::floor(value)) return std::nullopt;
  return value;
}

/// Check that a double identifies the integer: beyond 2^53, neighbouring integers share a double.
template <class T>
bool exact_as_double(T value) {
  constexpr T kExactMax = T{1} << 53;
  if constexpr (std::is_signed_v<T>) return value >= -kExactMax && value <= kExactMax;
  return value <= kExactMax;
}

/// The nearest float; no value if a finite value would become infinite.
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
