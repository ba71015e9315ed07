// sort_inputs: the files of a concatenation in the order of what they hold, such as run and subrun.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/comm.hpp"
#include "core/status.hpp"

namespace tailrace {

/// `inputs` in ascending order of the first values of the integer datasets `key_paths`, the first
/// path counting most; files that are alike in all of them keep their order. Collective: every rank
/// passes the same and returns the same.
/// Cost: each rank opens its share of the files; a gather of 8 bytes per file and path to rank 0, a
/// broadcast of 8 bytes per file.
/// @param bad_last  files that cannot be read, or lack such a value, come last, in their order;
/// else they are an error.
/// @error that of the first such file; all of them are named.
Result<std::vector<std::string>> sort_inputs(Comm& comm, std::vector<std::string> inputs,
                                             std::span<const std::string> key_paths, bool bad_last);

}  // namespace tailrace
