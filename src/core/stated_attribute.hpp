// StatedAttribute: an attribute of a file's object as texts or numbers, independent of the format.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "trz/base/dtype.hpp"

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

/// Add a text up to its first zero. @returns false if it is too long
inline bool add_stated_text(StatedAttribute& attribute, std::string text) {
  text.resize(std::min(text.size(), text.find('\0')));
  if (text.size() > kAttributeTextBytesMax) return false;
  attribute.texts.push_back(std::move(text));
  return true;
}

/// Set the numbers to `n` elements in native byte order, unless they are too many.
inline void set_stated_numbers(StatedAttribute& attribute, DType dtype, std::size_t n,
                               std::span<const std::byte> elements) {
  if (n > kAttributeElementsMax) return;
  attribute.numbers.resize(n);
  visit_dtype(dtype, [&]<class T>() {
    for (std::size_t i = 0; i < n; ++i) {
      T number;
      std::memcpy(&number, elements.data() + i * sizeof number, sizeof number);
      attribute.numbers[i] = static_cast<double>(number);
    }
    return 0;
  });
}

/// Predicate for the names of the attributes that a caller requests.
using AttributeFilter = bool (*)(std::string_view name);

}  // namespace tailrace
