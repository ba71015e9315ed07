// StatedAttribute: an attribute of a file's object as texts or numbers, whatever the format.

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

/// Elements that a StatedAttribute holds at most: a longer attribute has none.
inline constexpr std::size_t attribute_elements_max = 256;
/// Bytes of one of its texts: a longer attribute has none.
inline constexpr std::size_t attribute_text_bytes_max = 1U << 16;

/// True for the names of attributes that a caller asks for.
using AttributeFilter = bool (*)(std::string_view name);

}  // namespace tailrace
