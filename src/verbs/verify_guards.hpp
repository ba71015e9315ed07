// Guards that decoded values break, box by box.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "verbs/verify_files.hpp"

namespace tailrace::verbs {

struct BrokenGuards {
  std::uint64_t n = 0;      ///< Values, pairs of neighbours and chunks' sums.
  std::uint64_t first = 0;  ///< Index in the box of the first that was found, if there are any.
};

/// What breaks the task's guards in a box of whole chunks, but for minmax, which is of the whole
/// field. Values are row-major in the box. Cost: a pass for each kind of guard.
/// @param tighter  the regions' bounds in the box.
BrokenGuards find_broken_guards(const VerifyTask& task, const Box& box, const RegionLevels& tighter,
                                std::span<const std::byte> original,
                                std::span<const std::byte> decoded);

}  // namespace tailrace::verbs
