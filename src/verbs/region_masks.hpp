// Masks of guard=region=/MASK:X, as datasets of the files that the verbs read.

#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "describe/input_file.hpp"
#include "trz/base/regions.hpp"
#include "trz/base/status.hpp"

namespace tailrace::verbs {

/// Find the masks of a field's regions among the file's datasets of integers. A mask has the
/// field's shape, or, for every index of its first axis alike, the shape without that. Each is read
/// box by box, when it is asked for; the file must be there for so long.
/// @param one_at_a_time  held while the file is read; null: nobody else reads it meanwhile.
/// @error not_found  no such dataset.   @error invalid_argument  other numbers, another shape.
Result<RegionMasks> find_masks(InputFile& file, std::span<const RegionGuard> regions,
                               const Shape& shape, std::mutex* one_at_a_time);

}  // namespace tailrace::verbs
