// One element, over and over.

#pragma once

#include <cstddef>
#include <span>

namespace tailrace {

/// Fill `values` with `element`, whose size divides theirs; empty: with zeros. Not in one another.
void fill_values(std::span<std::byte> values, std::span<const std::byte> element);

}  // namespace tailrace
