// Fills memory with copies of one element.

#pragma once

#include <cstddef>
#include <span>

namespace tailrace {

/// Fill `values` with `element`, whose size divides theirs; with zeros if it is empty. The ranges
/// must not overlap.
void fill_values(std::span<std::byte> values, std::span<const std::byte> element);

}  // namespace tailrace
