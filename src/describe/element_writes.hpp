// Writes values of any type with HDF5. For types that hold arrays of variable-length data, HDF5
// 1.10 converts only the first of several elements correctly. Callers hold an Hdf5Scope.

#pragma once

#include <string>

#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// True if values of this type own memory: lists, or texts of variable length.
bool holds_variable_length(hid_t type);
/// True if an array within a value of this type holds lists or texts of variable length.
bool arrays_hold_variable_length(hid_t type);
/// Check that HDF5 can write the type.
/// @error unsupported  lists whose elements have such arrays: HDF5 writes all elements of a list in
/// one call.
Status check_lists(hid_t type, const std::string& what);

/// Write densely packed `values` to a box of a dataset (H5Dwrite).
/// @param space  the dataset's dataspace, in which the box is selected; the selection is undefined
/// afterwards.
herr_t write_elements(hid_t dataset, hid_t type, hid_t space, hid_t transfer, const void* values);

}  // namespace tailrace
