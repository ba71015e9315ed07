// Converts an HDF5 file whose datasets have no dimension scales into a valid netCDF-4 file.
//
// Used by `tailrace repack --netcdf`. The netCDF-4 library reads any HDF5 file, but names the
// dimensions phony_dim_7 and the like, which no object in the file can refer to. This code creates
// named dimensions instead. A dataset with the name and length of a dimension becomes its
// coordinate variable.

#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hdf5/hdf5_file.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// The user's dimension names for some variables.
struct DimensionNames {
  std::string pattern;             ///< Pattern as given, for messages.
  std::vector<std::string> names;  ///< Slowest dimension first.
  std::function<bool(std::string_view path)> matches;
};

/// Name every anonymous dimension of an output file; dimensions with scales stay.
///
/// Variables with given names come first. A given name that exists in the group or above it must
/// have the same length. A dataset of one dimension becomes a coordinate variable if its name and
/// length are those of a dimension. In each group, remaining dimensions of equal length share a
/// dimension, unless a variable would have it twice. All others get a new dimension dim_LENGTH
/// (dim_LENGTH_2, ...; dim_unlimited).
///
/// Two forms are converted. The netCDF-4 library refuses a file with attributes of several
/// dimensions: they become lists. It misreads fixed-length strings: they become variable-length
/// strings. Rank 0 only, before the commit; takes the HDF5 lock.
/// @returns lines that report the changes to the user.
/// @error invalid_argument  too few or too many names, or names that do not fit.
Result<std::vector<std::string>> name_dimensions(Hdf5File& file,
                                                 std::span<const DimensionNames> given);

}  // namespace tailrace
