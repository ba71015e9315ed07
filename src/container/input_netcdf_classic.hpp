// NetcdfClassicInput: a netCDF classic file (CDF-1, CDF-2, CDF-5) as an InputFile.

#pragma once

#include <memory>

#include "container/input_bytes.hpp"
#include "container/input_file.hpp"

namespace tailrace {

/// Open a netCDF classic file. Not collective.
/// @error corrupt  a malformed header, or a file shorter than its header says.  @error io_error
Result<std::unique_ptr<InputFile>> open_netcdf_classic_input(std::shared_ptr<InputBytes> bytes);

}  // namespace tailrace
