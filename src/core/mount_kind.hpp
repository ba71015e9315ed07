// What kind of file system an open file lies on, as far as decisions depend on it.

#pragma once

#include <cstdint>
#include <string>

namespace tailrace {

enum class MountKind : std::uint8_t {
  own_disk,
  own_memory,
  /// Reached over a network, where flock() holds for all nodes.
  locks_between_nodes,
  /// Any other, and what is not known: flock() may hold for this node only.
  other,
};

/// The kind of what an open file is on. Cost: one reading of the list of mounts.
MountKind mount_kind_of(int descriptor);

/// The kind that a line of /proc/self/mountinfo (proc(5)) tells of.
MountKind mount_kind_in(const std::string& mountinfo_line);

}  // namespace tailrace
