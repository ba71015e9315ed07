// Listing objects, comparing attributes.

#include "container/check_objects.hpp"

#include <algorithm>
#include <filesystem>

#include "container/check_values.hpp"
#include "container/hdf5_compat.hpp"

namespace tailrace {
namespace {

#if H5_VERSION_GE(1, 12, 0)
using ObjectInfo = H5O_info2_t;
#else
using ObjectInfo = H5O_info_t;
#endif

herr_t note_object(hid_t, const char* name, const ObjectInfo* info, void* data) {
  const std::string path = std::string(name) == "." ? "/" : "/" + std::string(name);
  static_cast<std::vector<CheckedObject>*>(data)->push_back({path, info->type});
  return 0;
}

herr_t note_name(hid_t, const char* name, const H5A_info_t*, void* data) {
  static_cast<std::vector<std::string>*>(data)->emplace_back(name);
  return 0;
}

std::vector<std::string> attribute_names(hid_t object) {
  std::vector<std::string> names;
  hsize_t start = 0;
  H5Aiterate2(object, H5_INDEX_NAME, H5_ITER_INC, &start, note_name, &names);
  return names;
}

CheckedElements read_attribute(hid_t attribute) {
  return {Hdf5Id(H5Aget_type(attribute)), Hdf5Id(H5Aget_space(attribute)),
          [&](hid_t type, void* bytes) { return H5Aread(attribute, type, bytes); }};
}

/// NetCDF-4 gives a dimension without a variable a NAME that ends in its length.
constexpr std::string_view dimension_name = "This is a netCDF dimension but not a netCDF variable.";

/// What two attributes of one type say differently; empty: nothing.
std::string difference(const std::string& name, hid_t a, hid_t b, const CheckedSide& input,
                       const CheckedSide& output) {
  const Hdf5Id space_a(H5Aget_space(a));
  const Hdf5Id space_b(H5Aget_space(b));
  const bool back_references = name == "REFERENCE_LIST";
  if (!back_references && H5Sextent_equal(space_a.get(), space_b.get()) <= 0) {
    return "has another shape than in the first input";
  }
  const CheckedElements values_a = read_attribute(a);
  const CheckedElements values_b = read_attribute(b);
  if (!values_a.read() || !values_b.read()) return "cannot be read";
  std::vector<std::string> texts_a;
  std::vector<std::string> texts_b;
  for (std::size_t i = 0; i < values_a.n_elements() && back_references; ++i) {
    texts_a.push_back(checked_value_text(values_a.type(), {values_a.at(i), input.file}));
  }
  for (std::size_t i = 0; i < values_b.n_elements() && back_references; ++i) {
    texts_b.push_back(checked_value_text(values_b.type(), {values_b.at(i), output.file}));
  }
  if (back_references) {
    // Who uses a dimension scale, in the order in which it was attached.
    std::sort(texts_a.begin(), texts_a.end());
    std::sort(texts_b.begin(), texts_b.end());
    return texts_a == texts_b ? "" : "leads to other datasets than in the first input";
  }
  for (std::size_t i = 0; i < values_a.n_elements(); ++i) {
    const CheckedValue value_a{values_a.at(i), input.file};
    const CheckedValue value_b{values_b.at(i), output.file};
    if (same_value(values_a.type(), value_a, value_b)) continue;
    const std::string text_a = checked_value_text(values_a.type(), value_a);
    if (name == "NAME" && text_a.starts_with('"' + std::string(dimension_name))) continue;
    return "is " + checked_value_text(values_b.type(), value_b) + ", but " + text_a +
           " in the first input";
  }
  return "";
}

}  // namespace

CheckedElements::~CheckedElements() {
  if (read_ && n_elements_ > 0 && !is_plain_type(type_.get())) {
    reclaim_variable_length(type_.get(), space_.get(), bytes_.data());
  }
}

Result<std::vector<CheckedObject>> list_checked_objects(hid_t file, const std::string& file_name) {
  std::vector<CheckedObject> objects;
#if H5_VERSION_GE(1, 12, 0)
  const herr_t rc =
      H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, note_object, &objects, H5O_INFO_BASIC);
#else
  const herr_t rc =
      H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, note_object, &objects, H5O_INFO_BASIC);
#endif
  if (rc < 0) return hdf5_failure(Code::corrupt, file_name + ": its objects cannot be listed");
  return objects;
}

Result<Hdf5Id> open_checked_file(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) {
    return Status(Code::not_found, path + ": no such file");
  }
  Hdf5Id file(H5Fopen(path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT));
  if (!file.valid()) return hdf5_failure(Code::corrupt, path + ": cannot be opened");
  return file;
}

void compare_attributes(const CheckedSide& input, const CheckedSide& output, const std::string& who,
                        ConcatFindings& findings) {
  const std::vector<std::string> names = attribute_names(input.object);
  for (const std::string& name : attribute_names(output.object)) {
    if (!std::binary_search(names.begin(), names.end(), name)) {
      findings.add(who + ": attribute \"" + name + "\" is not in the first input");
    }
  }
  for (const std::string& name : names) {
    const std::string which = who + ": attribute \"" + name + "\" ";
    if (H5Aexists(output.object, name.c_str()) <= 0) {
      findings.add(which + "is missing in the output");
      continue;
    }
    const Hdf5Id a(H5Aopen(input.object, name.c_str(), H5P_DEFAULT));
    const Hdf5Id b(H5Aopen(output.object, name.c_str(), H5P_DEFAULT));
    const Hdf5Id type_a(H5Aget_type(a.get()));
    const Hdf5Id type_b(H5Aget_type(b.get()));
    if (H5Tequal(type_a.get(), type_b.get()) <= 0) {
      findings.add(which + "has another type than in the first input");
      continue;
    }
    const std::string text = difference(name, a.get(), b.get(), input, output);
    if (!text.empty()) findings.add(which + text);
  }
}

}  // namespace tailrace
