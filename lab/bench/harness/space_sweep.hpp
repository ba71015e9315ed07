// Space that reserving layouts need: storage overhead and overflow at several ratios.
//
// After Jin et al. 2022, figures 9 and 15: the extra space ratio from 1.10 to 1.43. Sizes and
// addresses do not depend on the storage, so each write runs once; times are those of this write.

#pragma once

#include <string>
#include <vector>

#include "method.hpp"

namespace tailrace::bench {

struct SpaceRow {
  std::string layout;         ///< "arena, default": at the layout's default ratio.
  double space_ratio = 0;     ///< Bytes reserved over bytes predicted; 0: the default.
  double overflow_share = 0;  ///< Chunks larger than their reserved space over all chunks.
  double overhead_share = 0;  ///< Unused bytes of the file's data part over encoded bytes.
  double seconds = 0;
};

/// Run layouts predictive and arena at several ratios, and claimed, with --codec. Collective.
/// @error  like the methods
Result<std::vector<SpaceRow>> space_sweep(const BenchContext& context, const std::string& folder);

}  // namespace tailrace::bench
