// A netCDF classic file (CDF-1, CDF-2, CDF-5) as an InputFile, and its model carried into HDF5.

#pragma once

#include <memory>
#include <string>
#include <vector>

#include "core/status.hpp"
#include "describe/input_bytes.hpp"
#include "describe/input_file.hpp"
#include "describe/netcdf_classic_header.hpp"
#include "hdf5/hdf5_file.hpp"

namespace tailrace {

// --- Lays a netCDF classic file's model out in HDF5 as the netCDF-4 library does: see InputFile.

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

// --- NetcdfClassicInput: a netCDF classic file (CDF-1, CDF-2, CDF-5) as an InputFile.

/// Open a netCDF classic file. Not collective.
/// @error corrupt  a malformed header, or a file shorter than its header says.  @error io_error
Result<std::unique_ptr<InputFile>> open_netcdf_classic_input(std::shared_ptr<InputBytes> bytes);

}  // namespace tailrace
