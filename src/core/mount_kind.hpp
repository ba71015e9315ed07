// Kind of file system that an open file is on, as far as decisions depend on it.

#pragma once

#include <cstdint>
#include <string>

namespace tailrace {

enum class MountKind : std::uint8_t {
  own_disk,
  own_memory,
  /// A network file system on which flock() locks between nodes.
  locks_between_nodes,
  /// Any other or unknown kind: flock() may lock within this node only.
  other,
};

/// Return the kind for an open file. Cost: one reading of the list of mounts.
MountKind mount_kind_of(int descriptor);

/// Return the kind that a line of /proc/self/mountinfo (proc(5)) describes.
MountKind mount_kind_in(const std::string& mountinfo_line);

}  // namespace tailrace
