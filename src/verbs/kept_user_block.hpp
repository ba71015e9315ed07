// Copies the user block of an input to the front of the output.

#pragma once

#include <cstdint>
#include <string>

#include "core/options.hpp"

namespace tailrace::verbs {

/// Start a new file with a copy of the user block of the file `input`. Rank 0 copies it when it
/// creates the file. Call alike on every rank.
/// @param n_bytes  size of the user block; 0: none.
void keep_user_block(const std::string& input, std::uint64_t n_bytes, FileOptions& options);

}  // namespace tailrace::verbs
