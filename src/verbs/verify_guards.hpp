// Finds guards that decoded values break, box by box.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "verbs/verify_files.hpp"

namespace tailrace::verbs {

struct BrokenGuards {
  std::uint64_t n = 0;      ///< Number of values, pairs of neighbours and chunk sums that break a
                            ///< guard.
  std::uint64_t first = 0;  ///< Index in the box of the first one found; valid if n > 0.
};

/// Find violations of the task's guards in a box of complete chunks. Excludes minmax, which
/// concerns the complete field. Values are row-major in the box. Cost: one pass for each kind of
/// guard.
/// @param tighter  the regions' bounds in the box.
BrokenGuards find_broken_guards(const VerifyTask& task, const Box& box, const RegionLevels& tighter,
                                std::span<const std::byte> original,
                                std::span<const std::byte> decoded);

}  // namespace tailrace::verbs
