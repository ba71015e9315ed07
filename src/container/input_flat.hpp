// Inputs that are one array and nothing else: NumPy .npy and raw binary.

#pragma once

#include <memory>
#include <string>

#include "container/input_bytes.hpp"
#include "container/input_file.hpp"

namespace tailrace {

/// A .npy file, versions 1 to 3, either byte order, C or Fortran order. Not collective.
/// @error corrupt, unsupported, io_error
Result<std::unique_ptr<InputFile>> open_npy_input(std::shared_ptr<InputBytes> bytes);

/// A file of nothing but values in native byte order, whose size must be exactly format's.
/// @error invalid_argument  the size differs; the message gives both numbers.
Result<std::unique_ptr<InputFile>> open_raw_input(std::shared_ptr<InputBytes> bytes,
                                                  const RawFormat& format);

}  // namespace tailrace
