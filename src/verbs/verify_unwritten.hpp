// Elements of fields without a value: chunks that were never written, in a dataset whose fill value
// is undefined or never written.
//
// HDF5 does not set the caller's memory for such elements, so that comparing them would be
// meaningless. A dataset without any value is not a field (hdf5_catalog.cpp); structure_check.cpp
// compares it.

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "read/read.hpp"
#include "trz/base/status.hpp"
#include "verbs/verify_files.hpp"

namespace tailrace::verbs {

/// Find the elements of task.original_index that have no value (task.unwritten). If both files cut
/// the field into the same chunks, a chunk that only one file has is a problem. Not collective.
/// @error corrupt
Status find_unwritten(InputFile& original, InputFile& compressed, VerifyTask& task,
                      std::vector<std::string>& problems);

/// Copy the original's elements of `box` that have no value to `decoded`, so that they count as
/// equal.
void leave_out_unwritten(const VerifyTask& task, const Box& box,
                         std::span<const std::byte> original, std::span<std::byte> decoded);

}  // namespace tailrace::verbs
