// BoxSeries: boxes one behind the other in an array of one dimension, as plotfiles have them.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trz/base/box.hpp"

namespace tailrace {

/// Of each box all cells of its first component, then of its second, and so on.
struct BoxSeries {
  struct Run {
    std::uint64_t n_boxes = 0;
    Shape cells;  ///< Of each of these boxes, slowest axis first; extents >= 1.
  };
  std::vector<Run> runs;
  std::vector<std::string> components;  ///< Their names; at least one.
};

}  // namespace tailrace
