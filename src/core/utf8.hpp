// Names in messages: the known name nearest to a misspelt one, the first of many names, and counts
// with their nouns. trz/base/printable.hpp handles UTF-8.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <numeric>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "trz/base/printable.hpp"

namespace tailrace {

/// Return the number of characters to insert, delete or replace to turn one text into the other
/// (Levenshtein).
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t corner = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t changed = corner + (a[i] == b[j] ? 0 : 1);
      corner = row[j + 1];
      row[j + 1] = std::min({changed, corner + 1, row[j] + 1});
    }
  }
  return row.back();
}

/// Return "; did you mean \"layout\"?" for a name that is not in `names`; empty if none is near.
inline std::string did_you_mean(std::string_view name, std::span<const std::string_view> names) {
  constexpr std::size_t typing_errors = 2;  // a swap of two letters counts as two
  std::string_view best;
  std::size_t least = std::min(typing_errors, name.size() / 2) + 1;
  for (const std::string_view each : names) {
    if (edit_distance(name, each) >= least) continue;
    least = edit_distance(name, each);
    best = each;
  }
  return best.empty() ? "" : "; did you mean \"" + std::string(best) + "\"?";
}

/// Return "1 chunk", "3 chunks".
inline std::string counted(std::uint64_t count, std::string_view noun) {
  return std::to_string(count).append(" ").append(noun).append(count == 1 ? "" : "s");
}

/// Return "a, b and 3 more". @param most  names at most. @param name_of  returns an element's name
template <class Names, class NameOf = std::identity>
std::string first_names_text(const Names& names, std::size_t most, NameOf name_of = {}) {
  std::string text;
  std::size_t n = 0;
  for (const auto& each : names) {  // clang 14 has no std::views::take over libstdc++ 12.
    if (n == most) break;
    if (n++ > 0) text += ", ";
    text += std::invoke(name_of, each);
  }
  if (names.size() > n) text += " and " + std::to_string(names.size() - n) + " more";
  return text;
}

}  // namespace tailrace
