// Reads and writes attributes in netCDF-4's form in HDF5. Callers hold an Hdf5Scope.

#pragma once

#include <string>
#include <vector>

#include "hdf5/hdf5_handle.hpp"
#include "netcdf/netcdf_model.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Type of a dataset's or attribute's elements; empty for types without a netCDF-4 equivalent
/// (references, bit fields, times). Strings of one byte: text_char; other strings: text.
std::optional<ModelType> model_type_of(hid_t type);

/// HDF5's type for values in memory: native numbers, one-byte or variable-length strings. A new id.
Hdf5Id hdf5_memory_type(ModelType type);
/// HDF5's type that the netCDF-4 library stores for `type` on this machine. A new id.
Hdf5Id hdf5_file_type(ModelType type);

/// Read the attributes of an open object, without those reserved by netCDF-4, in creation order if
/// the object tracks it. Attributes that netCDF cannot represent (compounds, more than one
/// dimension, ...) have type other and no values. So have those that HDF5 cannot read; `remarks`
/// gets a line for each of these.
std::vector<ModelAttribute> read_model_attributes(hid_t object, const std::string& owner,
                                                  std::vector<std::string>& remarks);

/// Create an attribute, overwrite it if type and length are unchanged, or else replace it.
/// @error internal  HDF5 refuses.  @error unsupported  type other.
Status write_model_attribute(hid_t object, const std::string& owner,
                             const ModelAttribute& attribute);

/// Change an object's attributes, and their order, from `old` to `next`. Those of type other stay.
Status change_model_attributes(hid_t object, const std::string& owner,
                               const std::vector<ModelAttribute>& old,
                               const std::vector<ModelAttribute>& next);

/// Convert attributes of several dimensions to lists: the netCDF-4 library refuses a file with such
/// an attribute. Appends a line for each to `lines`.
Status flatten_wide_attributes(hid_t object, const std::string& owner,
                               std::vector<std::string>& lines);

/// Set the root group's _NCProperties, which names the writing library, unless it exists.
Status write_netcdf_properties(hid_t root);

}  // namespace tailrace
