// StatedAttribute: an attribute of a file's object as texts or numbers, independent of the format.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace tailrace {

struct StatedAttribute {
  std::string name;
  std::vector<std::string> texts;  ///< Elements of a text attribute.
  std::vector<double> numbers;     ///< Elements of a number attribute.
};

/// Most elements that a StatedAttribute holds; a longer attribute is stored as empty.
inline constexpr std::size_t kAttributeElementsMax = 256;
/// Most bytes of each text; an attribute with a longer text is stored as empty.
inline constexpr std::size_t kAttributeTextBytesMax = 1U << 16;

/// Predicate for the names of the attributes that a caller requests.
using AttributeFilter = bool (*)(std::string_view name);

}  // namespace tailrace
