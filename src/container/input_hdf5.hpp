// Hdf5Input: an HDF5 or netCDF-4 file as an InputFile.

#pragma once

#include <memory>
#include <string>

#include "container/input_file.hpp"

namespace tailrace {

/// Open an HDF5 file for reading. Not collective; takes the HDF5 lock.
/// @error corrupt  truncated or damaged, with HDF5's own reason.  @error io_error
Result<std::unique_ptr<InputFile>> open_hdf5_input(const std::string& path);

}  // namespace tailrace
