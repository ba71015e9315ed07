// Inputs that are one array and nothing else: NumPy .npy and raw binary.

#pragma once

#include <memory>
#include <string_view>

#include "describe/input_bytes.hpp"
#include "describe/input_file.hpp"
#include "trz/base/box.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

// --- NpyHeader: what the head of a NumPy .npy file says, parsed from untrusted bytes.
//
// The head is a Python dict literal with the keys descr, fortran_order and shape. The parser
// accepts what numpy.save writes (versions 1.0, 2.0, 3.0, and the "L" of Python 2's long integers).
// Source: NumPy's format description (numpy.lib.format).

struct NpyHeader {
  DType dtype = DType::f32;
  bool swap_bytes = false;         ///< The values' byte order is not this machine's.
  bool fortran_order = false;      ///< First dimension fastest.
  Shape shape;                     ///< As Python sees it; empty for a scalar.
  std::uint64_t data_address = 0;  ///< Byte position of the first value.
};

/// Whether these first bytes are those of a .npy file.
bool is_npy(std::string_view first_bytes);

/// Parse the dict literal. Not collective. Thread-safe.
/// @error corrupt  not such a literal.  @error unsupported  a dtype that Tailrace does not move.
Result<NpyHeader> parse_npy_literal(std::string_view literal);

/// Read and check a file's head, including that the file holds exactly the values it announces.
/// @error corrupt, unsupported, io_error
Result<NpyHeader> read_npy_header(const InputBytes& input);

// --- Inputs that are one array and nothing else: NumPy .npy and raw binary.

/// A .npy file, versions 1 to 3, either byte order, C or Fortran order. Not collective.
/// @error corrupt, unsupported, io_error
Result<std::unique_ptr<InputFile>> open_npy_input(std::shared_ptr<InputBytes> bytes);

/// A file of nothing but values in native byte order, whose size must be exactly format's.
/// @error invalid_argument  the size differs; the message gives both numbers.
Result<std::unique_ptr<InputFile>> open_raw_input(std::shared_ptr<InputBytes> bytes,
                                                  const RawFormat& format);

}  // namespace tailrace
