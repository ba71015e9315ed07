// Identity of the machine and file system that this process uses: a machine profile must match it
// (model/machine_profile.hpp). From /proc, uname and statvfs.

#pragma once

#include <cstdint>
#include <string>

#include "model/machine_profile.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Find the identity. Not collective. Thread-safe. `folder` may be relative. The file system is
/// "unknown" if the folder does not exist, the processor if the machine has no /proc.
MachineIdentity find_machine_identity(const std::string& folder);

/// Return the kernel's name of the processor, or "unknown".
std::string processor_name();
/// Return the number of cores of the node, regardless of the launcher's binding; at least 1.
std::uint64_t n_cores_of_node();
/// Return the type of the file system of `folder` (absolute, without links): "ext4", "lustre".
std::string file_system_of(const std::string& folder);
/// Return the current time in UTC: "2026-11-21T12:00:00Z".
std::string utc_now();

struct FolderFacts {
  std::uint64_t free_bytes = 0;  ///< Free for this user.
  std::uint64_t block_bytes = 0;
};
/// @error not_found, io_error
Result<FolderFacts> find_folder_facts(const std::string& folder);

}  // namespace tailrace
