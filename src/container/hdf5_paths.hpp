// Paths of HDF5 objects, taken apart.

#pragma once

#include <algorithm>
#include <cstddef>
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

/// For messages: dataset "/g/name".
inline std::string quoted(const char* kind, const std::string& path) {
  return std::string(kind) + " \"" + path + "\"";
}

}  // namespace tailrace
