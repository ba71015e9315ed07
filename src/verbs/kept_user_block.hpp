// The user block of an input, kept in front of the output.

#pragma once

#include <cstdint>
#include <string>

#include "core/options.hpp"

namespace tailrace::verbs {

/// Let a new file begin with the first `n_bytes` of the file `input`, which HDF5 calls its user
/// block: rank 0 copies them when it creates the file. Every rank says so alike. @param n_bytes  0:
/// there is none.
void keep_user_block(const std::string& input, std::uint64_t n_bytes, FileOptions& options);

}  // namespace tailrace::verbs
