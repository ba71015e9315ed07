// Choice of a chunk's bound if some of its values have tighter bounds. Either these values become
// patches, or the bound of all values is lowered, whichever is expected to need fewer bytes. The
// estimate is reliable only if it favours the lower bound; if it favours patches, the encoder tries
// both.

#pragma once

#include <cstddef>

#include "trz/base/regions.hpp"

namespace tailrace::trz {

struct RegionBound {
  double chosen = 0;  ///< Bound for all values of the chunk; at most the chunk's bound.
  double least = 0;   ///< Bound by which no value would need a patch.
};

/// Choose the bound of a chunk. Empties `tighter` if the chosen bound satisfies all of it; the rest
/// needs patches.
/// @param for_all  patches are not possible: choose a bound that satisfies all values.
RegionBound bound_for_regions(RegionLevels& tighter, double bound, std::size_t element_bytes,
                              bool for_all);

}  // namespace tailrace::trz
