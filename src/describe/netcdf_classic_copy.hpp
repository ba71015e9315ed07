// Comparison of a netCDF classic file with a copy of it, for `tailrace verify`. It covers the
// values of char variables and all attributes, which are not fields. The copy is an HDF5 file with
// netCDF-4's layout (input_netcdf_classic.hpp), or a classic file.

#pragma once

#include <functional>
#include <string>

#include "trz/base/status.hpp"

namespace tailrace {

/// Selects the objects to compare, and receives the differences.
struct NetcdfCopyCheck {
  std::function<bool(const std::string& path)> wanted;  ///< True for objects to compare; "/" is the
                                                        ///< file itself.
  std::function<void(std::string line)> differs;        ///< Receives a line that names the copy,
                                                        ///< the object and both values.
};

/// Compare the two files. Ignores additional content of the copy, names that netCDF-4 reserves, and
/// variables that the copy lacks. Not collective; takes the HDF5 lock. Memory: 8 MiB.
/// @error corrupt, io_error  one of the files cannot be read.  @error not_found
Status compare_netcdf_classic_copy(const std::string& original, const std::string& copy,
                                   const NetcdfCopyCheck& check);

}  // namespace tailrace
