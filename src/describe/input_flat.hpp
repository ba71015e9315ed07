// Inputs that contain one array and nothing else: NumPy .npy and raw binary.

#pragma once

#include <memory>
#include <string_view>

#include "describe/input_bytes.hpp"
#include "describe/input_file.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- NpyHeader: the header of a NumPy .npy file, parsed from untrusted bytes.
//
// The header is a Python dict literal with the keys descr, fortran_order and shape. The parser
// accepts everything that numpy.save writes: versions 1.0, 2.0, 3.0, and the "L" of Python 2's long
// integers. Source: NumPy's format description (numpy.lib.format).

struct NpyHeader {
  DType dtype = DType::f32;
  bool swap_bytes = false;         ///< The values' byte order differs from this machine's.
  bool fortran_order = false;      ///< The first dimension varies fastest.
  Shape shape;                     ///< Shape in Python's order; empty for a scalar.
  std::uint64_t data_address = 0;  ///< Byte position of the first value.
};

/// True if a file that starts with these bytes is a .npy file.
bool is_npy(std::string_view first_bytes);

/// Parse the dict literal. Not collective. Thread-safe.
/// @error corrupt  not such a literal.  @error unsupported  a dtype that Tailrace does not support.
Result<NpyHeader> parse_npy_literal(std::string_view literal);

/// Read and check a file's header. The file must hold exactly the values that the header announces.
/// @error corrupt, unsupported, io_error
Result<NpyHeader> read_npy_header(const InputBytes& input);

// --- Inputs that contain one array and nothing else: NumPy .npy and raw binary.

/// Open a .npy file, versions 1 to 3, either byte order, C or Fortran order. Not collective.
/// @error corrupt, unsupported, io_error
Result<std::unique_ptr<InputFile>> open_npy_input(std::shared_ptr<InputBytes> bytes);

/// Open a file that contains only values in native byte order. Its size must match `format`
/// exactly.
/// @error invalid_argument  the size differs; the message states both sizes.
Result<std::unique_ptr<InputFile>> open_raw_input(std::shared_ptr<InputBytes> bytes,
                                                  const RawFormat& format);

}  // namespace tailrace
