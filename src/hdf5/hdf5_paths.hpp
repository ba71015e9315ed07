// Splits and joins paths of HDF5 objects.

#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace tailrace {

/// All prefixes of a path: "/a/b/c" -> {"/a", "/a/b", "/a/b/c"}; empty components are skipped.
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

/// The parent path: "/a" for "/a/b", "/" for "/a".
inline std::string parent_path(const std::string& path) {
  const std::size_t slash = path.find_last_of('/');
  return slash == 0 || slash == std::string::npos ? "/" : path.substr(0, slash);
}

/// The last component: "b" for "/a/b".
inline std::string last_component(const std::string& path) {
  return path.substr(path.find_last_of('/') + 1);
}

/// Path of a group's member: "/a/b" for ("/a", "b") and "/b" for ("/", "b").
inline std::string child_path(const std::string& group_path, const std::string& name) {
  return group_path == "/" ? "/" + name : group_path + "/" + name;
}

/// Absolute path of a name relative to a group: "/a/b" for ("/a", "./b") and ("", "/a//b").
inline std::string absolute_path(const std::string& group_path, const std::string& name) {
  std::string path;
  for (const std::string& whole : {group_path, name}) {
    for (std::size_t at = 0; at < whole.size();) {
      const std::size_t end = std::min(whole.find('/', at), whole.size());
      const std::string part = whole.substr(at, end - at);
      if (!part.empty() && part != ".") path += "/" + part;
      at = end + 1;
    }
  }
  return path.empty() ? "/" : path;
}

/// Number of root group members needed to hold these objects; `path_of` returns absolute paths.
template <class Objects, class PathOf>
std::uint64_t n_root_members(const Objects& objects, PathOf path_of) {
  std::set<std::string> names;
  for (const auto& object : objects) {
    const std::string& path = path_of(object);
    if (path.size() > 1) names.insert(path.substr(1, path.find('/', 1) - 1));
  }
  return names.size();
}

/// Object name for messages: dataset "/g/name".
inline std::string quoted(const char* kind, const std::string& path) {
  return std::string(kind) + " \"" + path + "\"";
}

}  // namespace tailrace
