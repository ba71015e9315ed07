// Are two elements of one HDF5 type the same, whatever they are made of? And what do they say?
//
// For `tailrace verify --concat`. Elements that are their bytes are compared as bytes, so that NaN
// equals the same NaN; strings and sequences of variable length by content; object references by
// the path that they lead to, since addresses differ between files. Callers hold an Hdf5Scope.

#pragma once

#include <cstddef>
#include <string>

#include "container/hdf5_handle.hpp"

namespace tailrace {

/// An element in memory and the file that its references point into.
struct CheckedValue {
  const std::byte* bytes = nullptr;
  hid_t file = H5I_INVALID_HID;
};

/// Whether elements of `type` are their bytes: nothing of variable length, no reference.
bool is_plain_type(hid_t type);

/// Whether two elements of `type` (as it is in memory) say the same.
bool same_value(hid_t type, CheckedValue a, CheckedValue b);

/// An element for a message: "3", "-1.5", "nan (7fc00000)", "\"text\"", "{1, 2}".
std::string checked_value_text(hid_t type, CheckedValue value);

}  // namespace tailrace
