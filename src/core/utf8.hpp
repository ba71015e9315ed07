// UTF-8: what netCDF's names are made of, and what a chart can show.

#pragma once

#include <cstddef>
#include <string_view>

namespace tailrace {

/// Bytes of the UTF-8 character that begins at `at`; 0: none does that is well formed.
inline std::size_t utf8_character_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  const std::size_t n = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + n > text.size()) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80) return 0;
  }
  // Too long a form, a surrogate, beyond the last character.
  const unsigned second = byte(at + 1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) {
    return 0;
  }
  return n;
}

}  // namespace tailrace
