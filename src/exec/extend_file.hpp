// Making a file longer while others write to it.
//
// A commit states how long the file is, and in the background it runs beside writers of the next
// step. To look at the length and then set it by ftruncate would cut off what one of them has
// written behind that length in between.

#pragma once

#include <cstdint>
#include <string>

#include "core/status.hpp"

namespace tailrace {

/// Make the file at least `n_bytes` long. Never shrinks it and changes no byte that was written,
/// whoever writes meanwhile. Thread-safe. Allocates the last block alone; where the file system
/// cannot, append_zeros() does it. `path` is for messages. @error no_space, io_error
Status extend_file(int descriptor, std::uint64_t n_bytes, const std::string& path);

/// The same by writing zeros behind the end, wherever that is at the moment. On a network file
/// system that does not append atomically, other clients must not write meanwhile.
Status append_zeros(int descriptor, std::uint64_t n_bytes, const std::string& path);

}  // namespace tailrace
