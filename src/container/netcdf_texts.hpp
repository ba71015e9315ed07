// Fixed-length strings as netCDF-4 can read them.

#pragma once

#include <string>
#include <vector>

#include "container/hdf5_handle.hpp"
#include "core/status.hpp"

namespace tailrace {

/// Replace a dataset of fixed-length strings by one of variable-length strings, with its values,
/// attributes, scales and place among the links: the netCDF-4 library takes the former for the
/// latter and returns garbage (4.9), or crashes. Does nothing to other datasets. Call with HDF5
/// locked. Cost: all texts in memory. What is too large for that is left, with a line.
Status make_texts_variable(hid_t file, const std::string& path, std::vector<std::string>& lines);

}  // namespace tailrace
