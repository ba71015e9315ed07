// printable(): makes text from files and callers (names, attribute values, paths) safe to display.
//
// A name may contain any bytes: an escape sequence that clears a terminal, a newline that forges a
// table row, a mark that reverses the direction of the text after it. All text shown to people
// passes through these functions; files and JSON documents store the original bytes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace tailrace {

/// Number of bytes of the UTF-8 character that begins at `at`; 0 if the bytes are not well-formed.
inline std::size_t utf8_character_bytes(std::string_view text, std::size_t at) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at);
  if (first < 0x80) return 1;
  const std::size_t n = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || at + n > text.size()) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((byte(at + i) & 0xC0U) != 0x80) return 0;
  }
  // An overlong form, a surrogate, or a code point beyond U+10FFFF.
  const unsigned second = byte(at + 1);
  if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
      (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F)) {
    return 0;
  }
  return n;
}

/// Convert text to one line of well-formed UTF-8 whose characters are all displayed in order.
/// Control characters (C0, DEL, C1), line separators and direction marks become C escapes ("\n",
/// "\x1b", "\u202e"). Bytes that are not UTF-8 become escapes such as "\xff". A backslash stays
/// unchanged, so converting twice is harmless. Thread-safe. Allocates only if it escapes something.
std::string printable(std::string text);

/// Convert text of several lines like printable(), but keep the newlines.
std::string printable_lines(std::string text);

/// The lowest digits of a number, hexadecimal.
std::string hexadecimal(std::uint32_t number, int n_digits);

}  // namespace tailrace
