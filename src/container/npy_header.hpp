// NpyHeader: what the head of a NumPy .npy file says, parsed from untrusted bytes.
//
// The head is a Python dict literal with the keys descr, fortran_order and shape. The parser
// accepts what numpy.save writes (versions 1.0, 2.0, 3.0, and the "L" of Python 2's long integers).
// Source: NumPy's format description (numpy.lib.format).

#pragma once

#include <string>
#include <string_view>

#include "container/input_bytes.hpp"
#include "core/box.hpp"
#include "core/dtype.hpp"
#include "core/status.hpp"

namespace tailrace {

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

}  // namespace tailrace
