// Where this process runs and where it writes: what a machine profile must fit
// (model/machine_profile.hpp), from /proc, uname and statvfs.

#pragma once

#include <cstdint>
#include <string>

#include "model/machine_profile.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Not collective. Thread-safe. `folder` need not be absolute; one that does not exist has the file
/// system "unknown", as has a machine without /proc the processor.
MachineIdentity find_machine_identity(const std::string& folder);

/// The processor as the kernel names it, or "unknown".
std::string processor_name();
/// Cores of the node, whatever the launcher binds a rank to; at least 1.
std::uint64_t n_cores_of_node();
/// Type of the file system that `folder` (absolute, without links) lies on: "ext4", "lustre".
std::string file_system_of(const std::string& folder);
/// Now, in UTC: "2026-11-21T12:00:00Z".
std::string utc_now();

struct FolderFacts {
  std::uint64_t free_bytes = 0;  ///< For this user.
  std::uint64_t block_bytes = 0;
};
/// @error not_found, io_error
Result<FolderFacts> find_folder_facts(const std::string& folder);

}  // namespace tailrace
