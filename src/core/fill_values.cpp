#include "core/fill_values.hpp"

#include <algorithm>
#include <cstring>

namespace tailrace {

void fill_values(std::span<std::byte> values, std::span<const std::byte> element) {
  if (values.empty()) return;
  if (std::ranges::all_of(element, [](std::byte byte) { return byte == std::byte{0}; })) {
    std::memset(values.data(), 0, values.size());
    return;
  }
  for (std::size_t at = 0; at + element.size() <= values.size(); at += element.size()) {
    std::memcpy(values.data() + at, element.data(), element.size());
  }
}

}  // namespace tailrace
