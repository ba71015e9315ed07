// The bound by which a chunk is coded of which some values must keep tighter ones: they become
// patches, or the chunk's bound is made smaller, whatever promises to take fewer bytes. That is
// sure only of the smaller bound: where patches are promised the encoder tries both.

#pragma once

#include <cstddef>

#include "trz/base/regions.hpp"

namespace tailrace::trz {

struct RegionBound {
  double chosen = 0;  ///< For all of the chunk; no larger than its own.
  double least = 0;   ///< By which no value would have to be a patch.
};

/// How a chunk of this bound is coded. `tighter` keeps what the chosen bound does not see to, for
/// patches; nothing, if it sees to all.
/// @param for_all  patches cannot be: the bound sees to all.
RegionBound bound_for_regions(RegionLevels& tighter, double bound, std::size_t element_bytes,
                              bool for_all);

}  // namespace tailrace::trz
