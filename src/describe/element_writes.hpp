// Writing values of any type by HDF5, whose version 1.10 converts only the first of several
// elements right where they hold arrays of what has a variable length. Callers hold an Hdf5Scope.

#pragma once

#include <string>

#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// True if values of this type own memory of their own: lists, or texts of variable length.
bool holds_variable_length(hid_t type);
/// True if such values lie in an array within a value.
bool arrays_hold_variable_length(hid_t type);
/// @error unsupported  lists whose elements have such arrays: HDF5 writes a list's elements at
/// once.
Status check_lists(hid_t type, const std::string& what);

/// H5Dwrite of `values`, which lie dense, to a box of a dataset. `space`: the dataset's, in which
/// that box is selected; afterwards anything may be.
herr_t write_elements(hid_t dataset, hid_t type, hid_t space, hid_t transfer, const void* values);

}  // namespace tailrace
