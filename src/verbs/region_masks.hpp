// Masks of guard=region=/MASK:X, read from datasets of a verb's files.

#pragma once

#include <memory>
#include <mutex>
#include <span>

#include "describe/input_file.hpp"
#include "trz/base/regions.hpp"
#include "trz/base/status.hpp"

namespace tailrace::verbs {

/// Find the masks of a field's regions among the file's integer datasets. A mask has the field's
/// shape, or that shape without the first axis and then applies to every index of it. Masks are
/// read box by box on request; `file` must outlive them.
/// @param one_at_a_time  locked while the file is read; null: no other thread reads it.
/// @error not_found  the dataset does not exist.  @error invalid_argument  not integers, or another
/// shape.
Result<RegionMasks> find_masks(InputFile& file, std::span<const RegionGuard> regions,
                               const Shape& shape, std::mutex* one_at_a_time);

}  // namespace tailrace::verbs
