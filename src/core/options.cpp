// Parsers of single values.

#include "core/options.hpp"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <string>

#include "trz/base/settings_reader.hpp"

namespace tailrace {

namespace {

/// One element of a glob: a character, '?', or a set.
struct GlobElement {
  std::size_t length = 0;  ///< Characters of the pattern.
  bool matches = false;
};

/// True if a set's content matches the character. "-" between two characters means a range; a set
/// that starts with '!' or '^' matches all other characters.
bool set_matches(std::string_view set, char character) {
  const bool others = set.front() == '!' || set.front() == '^';
  if (others) set.remove_prefix(1);
  bool found = false;
  for (std::size_t i = 0; i < set.size(); ++i) {
    const bool range = i + 2 < set.size() && set[i + 1] == '-';
    found = found || (range ? set[i] <= character && character <= set[i + 2] : set[i] == character);
    if (range) i += 2;
  }
  return found != others;
}

/// Return the length of the set at the start of `pattern`, with its brackets. A ']' directly behind
/// the bracket or its '!' belongs to the set. @returns 0 if none starts there
std::size_t set_length(std::string_view pattern) {
  if (pattern.empty() || pattern.front() != '[') return 0;
  const bool others = pattern.size() > 1 && (pattern[1] == '!' || pattern[1] == '^');
  const std::size_t end = pattern.find(']', others ? 3 : 2);
  return end == std::string_view::npos ? 0 : end + 1;
}

/// Match the element at the start of `pattern`, which is not '*', with a character.
GlobElement match_element(std::string_view pattern, char character, bool sets) {
  if (pattern.empty()) return {};
  if (pattern.front() == '\\' && pattern.size() > 1) return {2, pattern[1] == character};
  if (pattern.front() == '?') return {1, true};
  if (const std::size_t length = sets ? set_length(pattern) : 0; length > 0) {
    return {length, set_matches(pattern.substr(1, length - 2), character)};
  }
  return {1, pattern.front() == character};
}

bool whole_glob_matches(std::string_view pattern, std::string_view text, bool sets) {
  std::size_t p = 0;
  std::size_t t = 0;
  std::size_t star = std::string_view::npos;
  std::size_t star_text = 0;
  while (t < text.size()) {
    if (p < pattern.size() && pattern[p] == '*') {
      star = p++;
      star_text = t;
    } else if (const GlobElement element = match_element(pattern.substr(p), text[t], sets);
               element.matches) {
      p += element.length;
      ++t;
    } else if (star != std::string_view::npos) {
      p = star + 1;
      t = ++star_text;
    } else {
      return false;
    }
  }
  while (p < pattern.size() && pattern[p] == '*') ++p;
  return p == pattern.size();
}

/// A bracket may also be a part of the name: "T [K]" and "*[K]" match "T [K]".
bool whole_glob_matches(std::string_view pattern, std::string_view text) {
  return whole_glob_matches(pattern, text, true) ||
         (pattern.find('[') != std::string_view::npos && whole_glob_matches(pattern, text, false));
}

}  // namespace

bool has_wildcard(std::string_view pattern) {
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const char character = pattern[at];
    if (character == '*' || character == '?' || set_length(pattern.substr(at)) > 0) return true;
    if (character == '\\') ++at;
  }
  return false;
}

std::size_t find_unescaped(std::string_view pattern, std::string_view characters) {
  std::size_t at = 0;
  while (at < pattern.size() && characters.find(pattern[at]) == std::string_view::npos) {
    at += pattern[at] == '\\' ? 2 : 1;
  }
  return at < pattern.size() ? at : std::string_view::npos;
}

Status bad_option_value(std::string_view key, std::string_view text, std::string_view expected) {
  return Status(Code::invalid_argument, "option " + std::string(key) + "=" + std::string(text) +
                                            ": expected " + std::string(expected));
}

Status bad_option_word(std::string_view key, std::string_view text,
                       std::span<const std::string_view> names) {
  return bad_option_value(key, text, one_of_text(text, names));
}

std::optional<double> leading_number(std::string_view text, std::string_view& rest) {
  double number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc()) return std::nullopt;
  rest = text.substr(static_cast<std::size_t>(parsed.ptr - text.data()));
  return number;
}

Result<std::vector<KeyValue>> split_key_values(std::string_view text) {
  return split_settings(text);
}

Result<std::uint64_t> parse_bytes(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 16> kUnits = {{
      {"", 1.0},
      {"B", 1.0},
      {"k", 0x1p10},
      {"K", 0x1p10},
      {"M", 0x1p20},
      {"G", 0x1p30},
      {"T", 0x1p40},
      {"kB", 1e3},
      {"KB", 1e3},
      {"MB", 1e6},
      {"GB", 1e9},
      {"TB", 1e12},
      {"KiB", 0x1p10},
      {"MiB", 0x1p20},
      {"GiB", 0x1p30},
      {"TiB", 0x1p40},
  }};
  std::string_view unit;
  const std::optional<double> number = leading_number(text, unit);
  unit = trimmed(unit);
  if (number && *number >= 0) {
    for (const auto& [name, factor] : kUnits) {
      if (name == unit && *number * factor < 0x1p63) {
        return static_cast<std::uint64_t>(std::llround(*number * factor));
      }
    }
  }
  return Status(Code::invalid_argument,
                "\"" + std::string(text) + "\" is not a number of bytes such as 8MiB or 256MB");
}

std::string bytes_text(std::uint64_t n_bytes) {
  constexpr std::array<const char*, 5> kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double number = static_cast<double>(n_bytes);
  std::size_t unit = 0;
  while (number >= 1000 && unit + 1 < kUnits.size()) {
    number /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 || number >= 100 ? "%.0f %s" : "%.3g %s",
                number, kUnits[unit]);
  return text.data();
}

Result<bool> parse_switch(std::string_view key, std::string_view text) {
  if (text == "on" || text == "yes" || text == "true" || text == "1" || text.empty()) return true;
  if (text == "off" || text == "no" || text == "false" || text == "0") return false;
  constexpr std::array<std::string_view, 6> all = {"on", "off", "yes", "no", "true", "false"};
  return bad_option_value(key, text, "on or off" + did_you_mean(text, all));
}

Result<std::uint64_t> parse_count(std::string_view key, std::string_view text,
                                  std::uint64_t least) {
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  if (parsed.ec != std::errc() || parsed.ptr != text.data() + text.size() || number < least) {
    return bad_option_value(key, text, "a whole number >= " + std::to_string(least));
  }
  return number;
}

Result<Shape> parse_shape(std::string_view text) {
  Shape shape;
  if (text == "scalar") return shape;
  std::string_view rest = text;
  while (true) {
    const std::size_t cross = rest.find('x');
    Result<std::uint64_t> extent = parse_count("shape", trimmed(rest.substr(0, cross)), 0);
    if (!extent.ok() || shape.size() == kMaxRank) {
      return Status(Code::invalid_argument,
                    "\"" + std::string(text) + "\" is not a shape such as 512x512x512");
    }
    shape.push_back(*extent);
    if (cross == std::string_view::npos) return shape;
    rest = rest.substr(cross + 1);
  }
}

bool glob_matches(std::string_view pattern, std::string_view text) {
  if (whole_glob_matches(pattern, text)) return true;
  if (!text.empty() && text.front() == '/' && whole_glob_matches(pattern, text.substr(1))) {
    return true;
  }
  const std::size_t slash = text.rfind('/');
  return pattern.find('/') == std::string_view::npos && slash != std::string_view::npos &&
         whole_glob_matches(pattern, text.substr(slash + 1));
}

}  // namespace tailrace
