// What an element type of fixed size is made of, as text for whoever names types by other words
// (NumPy's, in the Python package). HDF5's own encoding of the type goes in (H5Tencode), as it
// travels with every dataset; nothing is read from the file.

#pragma once

#include <string>

#include "core/comm.hpp"

namespace tailrace {

/// The type as JSON, a kind in each object; the byte order is the file's:
///   {"kind": "number", "numpy": "<f4"}            also "u2", "V5" (opaque, bit fields: their
///   bytes)
///   {"kind": "enum", "numpy": "|i1", "values": [["red", 0], ...]}
///   {"kind": "string", "bytes": 6}                fixed length, within compounds
///   {"kind": "array", "shape": [2, 3], "of": ...}
///   {"kind": "compound", "bytes": 16, "members": [{"name": "id", "at": 0, "of": ...}, ...]}
/// Empty for what holds, at any depth, elements that lie elsewhere in the file (variable length,
/// references) or numbers of formats that NumPy lacks. Not collective. Takes the HDF5 lock.
std::string describe_type(const Bytes& type);

}  // namespace tailrace
