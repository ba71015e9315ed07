// Attributes as netCDF-4 reads and writes them in HDF5. Callers hold an Hdf5Scope.

#pragma once

#include <string>
#include <vector>

#include "hdf5/hdf5_handle.hpp"
#include "netcdf/netcdf_model.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// The type of a dataset's or attribute's elements; none for what netCDF-4 has no word for
/// (references, bit fields, times). Strings of one byte: text_char; other strings: text.
std::optional<ModelType> model_type_of(hid_t type);

/// HDF5's type for a type in memory: native numbers, one-byte or variable-length strings. A new id.
Hdf5Id hdf5_memory_type(ModelType type);
/// The same as the netCDF-4 library stores it on this machine. A new id.
Hdf5Id hdf5_file_type(ModelType type);

/// The attributes of an open object, without those that netCDF-4 keeps for itself, in order of
/// creation where the object tracks it. Those with values that are not understood (compounds, more
/// than one dimension, ...) have type other and no values; so have those that HDF5 cannot read, of
/// which `remarks` gets a line each.
std::vector<ModelAttribute> read_model_attributes(hid_t object, const std::string& owner,
                                                  std::vector<std::string>& remarks);

/// Set an attribute: created, overwritten where type and length stay, else replaced.
/// @error internal  HDF5 refuses.  @error unsupported  type other.
Status write_model_attribute(hid_t object, const std::string& owner,
                             const ModelAttribute& attribute);

/// Bring an object's attributes from `old` to `next`, their order too. Those of type other stay.
Status change_model_attributes(hid_t object, const std::string& owner,
                               const std::vector<ModelAttribute>& old,
                               const std::vector<ModelAttribute>& next);

/// Make attributes of several dimensions into lists: the netCDF-4 library opens no file that has
/// one. A line for each goes to `lines`.
Status flatten_wide_attributes(hid_t object, const std::string& owner,
                               std::vector<std::string>& lines);

/// Set _NCProperties of the root group, if it has none: who made the file.
Status write_netcdf_properties(hid_t root);

}  // namespace tailrace
