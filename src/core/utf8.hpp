// Names in messages: the first of many names, and counts with their nouns. trz/base/near_names.hpp
// has the known name nearest to a misspelt one, trz/base/printable.hpp handles UTF-8.

#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "trz/base/near_names.hpp"
#include "trz/base/printable.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

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

/// Make the error for a name that no entry of a registry has; it lists the names and suggests the
/// nearest one. @param what  "layout"
template <class Entries>
Status unknown_name(std::string_view what, std::string_view name, const Entries& entries) {
  std::vector<std::string_view> names;
  names.reserve(std::size(entries));
  for (const auto& entry : entries) names.push_back(entry.name);
  return Status(Code::invalid_argument,
                std::string(what) + " \"" + std::string(name) + "\" is unknown; choose one of: " +
                    first_names_text(names, names.size()) + did_you_mean(name, names));
}

}  // namespace tailrace
