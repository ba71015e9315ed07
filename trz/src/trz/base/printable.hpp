// Text from files and callers (names, attribute values, paths) as terminals and pages may show it.
//
// A name may hold any bytes: an escape sequence that clears a terminal, a newline that forges a
// row, an override that turns the direction of what follows. Everything that is shown to people
// passes through here; files and JSON documents hold the bytes themselves.

#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace tailrace {

/// Number of bytes of the UTF-8 character that begins at `at`; 0 if no well-formed one does.
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

/// One line of well-formed UTF-8 in which every character is visible where it stands. Control
/// characters (C0, DEL, C1), line separators and marks of direction become escapes as in C ("\n",
/// "\x1b", "\u202e"), and bytes that are not UTF-8 become "\xff". A backslash stays as it is, so
/// that a text may pass through twice. Thread-safe. Allocates only where something is escaped.
std::string printable(std::string text);

/// Text of several lines, each as printable() makes it: newlines stay.
std::string printable_lines(std::string text);

}  // namespace tailrace
