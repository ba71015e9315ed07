// Makes a valid netCDF-4 file of an HDF5 file whose datasets have no dimension scales.
//
// For `tailrace repack --netcdf`: the netCDF-4 library reads any HDF5 file, but with dimensions
// called phony_dim_7, which nothing else in the file can refer to. Here they become named
// dimensions, with coordinate variables where a dataset of a dimension's name has its length.

#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hdf5/hdf5_file.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// What the user calls the dimensions of some variables.
struct DimensionNames {
  std::string pattern;             ///< As given, for messages.
  std::vector<std::string> names;  ///< Slowest first.
  std::function<bool(std::string_view path)> matches;
};

/// Name every anonymous dimension of an output file; dimensions that have scales stay. Variables
/// whose names are given come first; of the others, in each group equal lengths share a dimension,
/// as far as no variable has it twice, else they get one of the name dim_LENGTH (dim_LENGTH_2, ...;
/// dim_unlimited). A given name that exists in the group or above it must be of that length. A
/// dataset of one dimension whose name and length are a dimension's is its coordinate variable.
/// Attributes of several dimensions, which the netCDF-4 library refuses with the whole file, become
/// lists; fixed-length strings, which it misreads, variable-length ones. Rank 0 only, before the
/// commit; takes the HDF5 lock.
/// @returns lines that tell the user what was changed.
/// @error invalid_argument  names that are too few or many, or do not fit.
Result<std::vector<std::string>> name_dimensions(Hdf5File& file,
                                                 std::span<const DimensionNames> given);

}  // namespace tailrace
