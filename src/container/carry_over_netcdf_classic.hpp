// Lays a netCDF classic file's model out in HDF5 as the netCDF-4 library does: see InputFile.

#pragma once

#include <string>
#include <vector>

#include "container/hdf5_file.hpp"
#include "container/input_bytes.hpp"
#include "container/netcdf_classic_header.hpp"
#include "core/status.hpp"

namespace tailrace {

/// The HDF5 path that netCDF-4 gives a variable: "/name", or "/_nc4_non_coord_name" for a variable
/// that is named like a dimension which is not its first (the dimension's scale has the name).
std::string netcdf4_variable_path(const NetcdfHeader& header, const NetcdfVariable& variable);

/// Before the fields exist: char variables with their values.
/// @returns lines about what could not be carried over.  @error io_error, no_space, corrupt
Result<std::vector<std::string>> carry_over_netcdf_objects(const InputBytes& input,
                                                           const NetcdfHeader& header,
                                                           Hdf5File& output);

/// After the fields exist: dimensions as dimension scales, attributes, the order of variables.
Result<std::vector<std::string>> carry_over_netcdf_attributes(const NetcdfHeader& header,
                                                              Hdf5File& output);

}  // namespace tailrace
