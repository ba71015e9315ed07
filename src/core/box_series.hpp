// BoxSeries: consecutive boxes in an array of one dimension, the form that plotfiles use.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trz/base/box.hpp"

namespace tailrace {

/// Layout: each box has all cells of its first component, then of its second, and so on.
struct BoxSeries {
  struct Run {
    std::uint64_t n_boxes = 0;
    Shape cells;  ///< Shape of each of these boxes, slowest axis first; extents >= 1.
  };
  std::vector<Run> runs;
  std::vector<std::string> components;  ///< Names of the components; at least one.
};

}  // namespace tailrace
