// Attributes of datasets with requests, from which readers and later programs know their bounds.

#include <algorithm>
#include <cstdio>
#include <new>
#include <variant>

#include "hdf5_serial/requested_datasets.hpp"
#include "report/remark.hpp"

namespace tailrace::hdf5_serial {
std::string RequestedFiles::text_attribute(hid_t dataset, const char* name) const {
  if (hdf5_.H5Aexists(dataset, name) <= 0) return {};
  const hid_t attribute = hdf5_.H5Aopen(dataset, name, H5P_DEFAULT);
  if (attribute < 0) return {};
  std::string text;
  const hid_t type = hdf5_.H5Aget_type(attribute);
  const hid_t space = hdf5_.H5Aget_space(attribute);
  constexpr std::size_t most_bytes = 4096;
  const std::size_t n_bytes = type >= 0 ? hdf5_.H5Tget_size(type) : 0;
  if (space >= 0 && hdf5_.H5Tget_class(type) == H5T_STRING && hdf5_.H5Tis_variable_str(type) == 0 &&
      n_bytes <= most_bytes && hdf5_.H5Sget_select_npoints(space) == 1) {
    text.resize(n_bytes);
    if (hdf5_.H5Aread(attribute, type, text.data()) < 0) text.clear();
    text.resize(std::min(text.find('\0'), text.size()));
  }
  if (space >= 0) hdf5_.H5Sclose(space);
  if (type >= 0) hdf5_.H5Tclose(type);
  hdf5_.H5Aclose(attribute);
  return text;
}

std::optional<double> RequestedFiles::number_attribute(hid_t dataset, const char* name) const {
  if (hdf5_.H5Aexists(dataset, name) <= 0) return std::nullopt;
  const hid_t attribute = hdf5_.H5Aopen(dataset, name, H5P_DEFAULT);
  if (attribute < 0) return std::nullopt;
  const hid_t space = hdf5_.H5Aget_space(attribute);
  double number = 0;
  const bool ok = space >= 0 && hdf5_.H5Sget_select_npoints(space) == 1 &&
                  hdf5_.H5Aread(attribute, *hdf5_.H5T_NATIVE_DOUBLE_g, &number) >= 0;
  if (space >= 0) hdf5_.H5Sclose(space);
  hdf5_.H5Aclose(attribute);
  return ok ? std::optional(number) : std::nullopt;
}

bool RequestedFiles::is_scale(hid_t dataset) const {
  return text_attribute(dataset, "CLASS") == "DIMENSION_SCALE";
}

/// Call is_scale(). @returns false also if memory is missing
bool RequestedFiles::is_late_scale(hid_t dataset) const {
  try {
    return is_scale(dataset);
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool RequestedFiles::write_note(hid_t dataset, const EncodingNote& note) const {
  const char* const name = note.name.c_str();
  const auto* const text = std::get_if<std::string>(&note.value);
  const hid_t type =
      hdf5_.H5Tcopy(text != nullptr ? *hdf5_.H5T_C_S1_g : *hdf5_.H5T_NATIVE_DOUBLE_g);
  const hid_t space = hdf5_.H5Screate(H5S_SCALAR);
  bool ok = type >= 0 && space >= 0;
  // Without a terminating zero, which netCDF would count as a character.
  if (ok && text != nullptr) {
    ok = hdf5_.H5Tset_size(type, std::max<std::size_t>(text->size(), 1)) >= 0 &&
         hdf5_.H5Tset_strpad(type, H5T_STR_NULLPAD) >= 0 &&
         hdf5_.H5Tset_cset(type, H5T_CSET_UTF8) >= 0;
  }
  const hid_t attribute =
      ok ? hdf5_.H5Acreate2(dataset, name, type, space, H5P_DEFAULT, H5P_DEFAULT) : H5I_INVALID_HID;
  if (attribute >= 0) {
    const void* const value =
        text != nullptr ? static_cast<const void*>(text->c_str()) : &std::get<double>(note.value);
    ok = hdf5_.H5Awrite(attribute, type, value) >= 0;
    hdf5_.H5Aclose(attribute);
  }
  if (type >= 0) hdf5_.H5Tclose(type);
  if (space >= 0) hdf5_.H5Sclose(space);
  return ok && attribute >= 0;
}

bool RequestedFiles::describe(hid_t dataset, RequestedDataset& requested) {
  if (requested.may_be_late_scale() && is_late_scale(dataset)) {
    report::print_remark({"dataset \"", requested.path(),
                          "\" became a dimension scale after some of its values were stored with "
                          "loss; make it a scale before writing, or give it bound=none"});
    requested.set_late_reported();
  }
  File* const file = requested.described() ? nullptr : file_of(dataset);
  if (file == nullptr) return true;
  bool ok = true;
  // Delete attributes that a tool may have copied from its input; they do not describe this data.
  for (const char* const name : kEncodingNoteNames) {
    ok = (hdf5_.H5Aexists(dataset, name) <= 0 || hdf5_.H5Adelete(dataset, name) >= 0) && ok;
  }
  if (file->options.file.notes != Notes::off) {
    try {
      for (const EncodingNote& note : requested.notes()) ok = write_note(dataset, note) && ok;
    } catch (const std::bad_alloc&) {
      ok = false;  // The caller continues to close its id.
    }
  }
  requested.set_described();
  return ok;
}

}  // namespace tailrace::hdf5_serial
