// Paths of HDF5 objects, taken apart.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace tailrace {

/// "/a/b/c" -> {"/a", "/a/b", "/a/b/c"}; empty components are skipped.
inline std::vector<std::string> path_prefixes(const std::string& path) {
  std::vector<std::string> prefixes;
  std::string so_far;
  for (std::size_t at = 0; at < path.size();) {
    const std::size_t slash = std::min(path.find('/', at), path.size());
    if (slash > at) {
      so_far += "/" + path.substr(at, slash - at);
      prefixes.push_back(so_far);
    }
    at = slash + 1;
  }
  return prefixes;
}

/// How many members the root group has where these objects are; `path_of` one is absolute.
template <class Objects, class PathOf>
std::uint64_t n_root_members(const Objects& objects, PathOf path_of) {
  std::set<std::string> names;
  for (const auto& object : objects) {
    const std::string& path = path_of(object);
    if (path.size() > 1) names.insert(path.substr(1, path.find('/', 1) - 1));
  }
  return names.size();
}

/// For messages: dataset "/g/name".
inline std::string quoted(const char* kind, const std::string& path) {
  return std::string(kind) + " \"" + path + "\"";
}

}  // namespace tailrace
