// Elements of fields that have no value: chunks that were never written, of a dataset whose fill
// value is undefined or never written.
//
// HDF5 leaves the caller's memory as it is for such elements, so that a comparison would be one of
// chance. A dataset without any value is no field (hdf5_catalog.cpp); structure_check.cpp compares
// it.

#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "read/read.hpp"
#include "trz/base/status.hpp"
#include "verbs/verify_files.hpp"

namespace tailrace::verbs {

/// Find the elements of task.original_index that have no value (task.unwritten). A chunk that one
/// file alone has is a problem where both cut the field into the same chunks. Not collective.
/// @error corrupt
Status find_unwritten(InputFile& original, InputFile& compressed, VerifyTask& task,
                      std::vector<std::string>& problems);

/// Take over the original's elements of `box` that have no value, so that they count as equal.
void leave_out_unwritten(const VerifyTask& task, const Box& box,
                         std::span<const std::byte> original, std::span<std::byte> decoded);

}  // namespace tailrace::verbs
