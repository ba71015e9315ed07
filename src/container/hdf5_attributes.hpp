// Writing of plain attributes: texts and numbers. Helper of hdf5_file.cpp; callers hold an
// Hdf5Scope.

#pragma once

#include <string>

#include "container/hdf5_file.hpp"
#include "container/hdf5_handle.hpp"
#include "core/status.hpp"

namespace tailrace {

/// Create or replace the attribute `name` of an open object. Texts become fixed-length UTF-8
/// scalars; one number a scalar, several a 1-D array, none an empty (null) dataspace.
/// @error internal  HDF5 refuses, for instance more than 64 KiB in an object header of HDF5 1.6.
Status write_attribute(hid_t object, const std::string& name, const AttributeValue& value);

}  // namespace tailrace
