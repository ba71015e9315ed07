// BoxSource: values that are pulled when they are needed, rather than held in memory.

#pragma once

#include <cstddef>
#include <span>

#include "core/box.hpp"
#include "core/status.hpp"

namespace tailrace {

/// Where a pulled field's values come from; read() is called on the rank's main thread only.
class BoxSource {
 public:
  virtual ~BoxSource() = default;
  /// Fill `values` (row-major, box.n_elements() elements of the field's dtype) with one box.
  virtual Status read(const Box& box, std::span<std::byte> values) = 0;
};

}  // namespace tailrace
