// Names that a user has typed: without blanks around them, and the known name nearest to a misspelt
// one.

#pragma once

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <ranges>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tailrace {

/// Return `text` without surrounding blanks and line ends.
inline std::string_view trimmed(std::string_view text) {
  constexpr std::string_view blanks = " \t\n\r\v\f";
  const std::size_t first = text.find_first_not_of(blanks);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(blanks) - first + 1);
}

/// Return the number of typing errors between two texts: characters to insert, delete or replace,
/// and neighbours to swap (optimal string alignment). ASCII letters of either case are equal.
inline std::size_t edit_distance(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  const auto same = [&](std::size_t i, std::size_t j) { return lower(a[i]) == lower(b[j]); };
  std::vector<std::size_t> before(b.size() + 1);  // The row of a's first i - 1 characters.
  std::vector<std::size_t> row(b.size() + 1);
  std::vector<std::size_t> next(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    next[0] = i + 1;
    for (std::size_t j = 0; j < b.size(); ++j) {
      next[j + 1] = std::min({row[j] + (same(i, j) ? 0 : 1), row[j + 1] + 1, next[j] + 1});
      const bool swapped = i > 0 && j > 0 && same(i, j - 1) && same(i - 1, j);
      if (swapped) next[j + 1] = std::min(next[j + 1], before[j - 1] + 1);
    }
    before.swap(row);
    row.swap(next);
  }
  return row.back();
}

/// Return "; did you mean \"layout\"?" for a name that is not in `names`; empty if none is near.
template <std::ranges::input_range Names>
std::string did_you_mean(std::string_view name, const Names& names) {
  constexpr std::size_t typing_errors = 2;
  std::string_view best;
  std::size_t least = std::min(typing_errors, name.size() / 2) + 1;
  for (const std::string_view each : names) {
    const std::size_t distance = edit_distance(name, each);
    if (distance >= least) continue;
    least = distance;
    best = each;
  }
  return best.empty() ? "" : "; did you mean \"" + std::string(best) + "\"?";
}

/// Return "sync, async or in_situ", and the name of these that is nearest to the misspelt `name`.
template <std::ranges::forward_range Names>
std::string one_of_text(std::string_view name, const Names& names) {
  std::string text;
  for (auto each = std::ranges::begin(names); each != std::ranges::end(names); ++each) {
    const bool last = std::next(each) == std::ranges::end(names);
    if (!text.empty()) text += last ? " or " : ", ";
    text += *each;
  }
  return text + did_you_mean(name, names);
}

}  // namespace tailrace
