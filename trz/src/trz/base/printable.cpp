// Selects the characters to escape and writes their escapes.

#include "trz/base/printable.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace tailrace {

std::string hexadecimal(std::uint32_t number, int n_digits) {
  std::string text;
  while (n_digits-- > 0) text += "0123456789abcdef"[number >> (4 * n_digits) & 0xFU];
  return text;
}

namespace {

/// Code point of one well-formed UTF-8 character; a single byte is returned as it is.
std::uint32_t code_point(std::string_view bytes) {
  const auto first = static_cast<unsigned char>(bytes[0]);
  if (bytes.size() == 1) return first;
  std::uint32_t code = first & (0x7FU >> bytes.size());
  for (const char byte : bytes.substr(1)) {
    code = code << 6U | (static_cast<unsigned char>(byte) & 0x3FU);
  }
  return code;
}

/// True for characters that move the cursor, end a line or change the direction of nearby text.
bool is_shown_elsewhere(std::uint32_t code) {
  const auto within = [code](std::uint32_t first, std::uint32_t last) {
    return first <= code && code <= last;
  };
  return code < 0x20 || within(0x7F, 0x9F) || code == 0x061C || within(0x200E, 0x200F) ||
         within(0x2028, 0x202E) || within(0x2066, 0x2069);
}

std::string escape_of(std::uint32_t code) {
  switch (code) {
    case '\n': return "\\n";
    case '\r': return "\\r";
    case '\t': return "\\t";
    default: return code < 0x80 ? "\\x" + hexadecimal(code, 2) : "\\u" + hexadecimal(code, 4);
  }
}

std::string escaped(std::string text, bool newlines_stay) {
  std::string out;
  std::size_t n_taken = 0;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t n_bytes = utf8_character_bytes(text, at);
    const std::size_t next = at + (n_bytes == 0 ? 1 : n_bytes);
    const std::string_view bytes = std::string_view(text).substr(at, next - at);
    const std::uint32_t code = code_point(bytes);
    if (n_bytes == 0 || (is_shown_elsewhere(code) && !(newlines_stay && code == '\n'))) {
      out.append(text, n_taken, at - n_taken);
      out += n_bytes == 0 ? "\\x" + hexadecimal(code, 2) : escape_of(code);
      n_taken = next;
    }
    at = next;
  }
  if (n_taken == 0) return text;
  return out.append(text, n_taken, std::string::npos);
}

}  // namespace

std::string printable(std::string text) { return escaped(std::move(text), false); }

std::string printable_lines(std::string text) { return escaped(std::move(text), true); }

}  // namespace tailrace
