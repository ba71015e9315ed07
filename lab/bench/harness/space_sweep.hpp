// How much space layouts that reserve must keep: storage overhead and overflow at several ratios.
//
// After Jin et al. 2022, figures 9 and 15: the extra space ratio from 1.10 to 1.43. Sizes and
// places do not depend on the storage, so each write runs once; times are those of that one write.

#pragma once

#include <string>
#include <vector>

#include "method.hpp"

namespace tailrace::bench {

struct SpaceRow {
  std::string layout;         ///< "arena, default": as much as it keeps by itself.
  double space_ratio = 0;     ///< Bytes reserved over bytes predicted; 0: none was given.
  double overflow_share = 0;  ///< Chunks larger than their place over all chunks.
  double overhead_share = 0;  ///< Bytes of the data's part of the file not used, over encoded ones.
  double seconds = 0;
};

/// Layouts predictive and arena at several ratios, and claimed, with --codec. Collective.
/// @error as of the methods.
Result<std::vector<SpaceRow>> space_sweep(const BenchContext& context, const std::string& folder);

}  // namespace tailrace::bench
