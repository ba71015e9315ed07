// A netCDF classic file beside a copy of it, for `tailrace verify`: the values of its char
// variables and all attributes, which are no fields. The copy is an HDF5 file laid out as
// netCDF-4 does (input_netcdf_classic.hpp), or classic itself.

#pragma once

#include <functional>
#include <string>

#include "trz/base/status.hpp"

namespace tailrace {

/// Which objects are compared, and who hears of what differs.
struct NetcdfCopyCheck {
  std::function<bool(const std::string& path)> wanted;  ///< "/" is the file itself.
  std::function<void(std::string line)> differs;        ///< Names copy, object, both values.
};

/// Compare. What the copy has besides is no difference, nor are names that netCDF-4 keeps for
/// itself, nor variables that it lacks. Not collective; takes the HDF5 lock. Memory: 8 MiB.
/// @error corrupt, io_error  one of the files cannot be read.  @error not_found
Status compare_netcdf_classic_copy(const std::string& original, const std::string& copy,
                                   const NetcdfCopyCheck& check);

}  // namespace tailrace
