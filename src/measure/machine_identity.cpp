// Reads facts from /proc, uname and statvfs.

#include "measure/machine_identity.hpp"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "core/version.hpp"

namespace tailrace {

MachineIdentity find_machine_identity(const std::string& folder) {
  MachineIdentity identity;
  identity.tailrace_version = version_text;
  utsname system{};
  if (::uname(&system) == 0) identity.host = system.nodename;
  identity.processor = processor_name();
  identity.n_cores = n_cores_of_node();
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::canonical(folder, error);
  identity.file_system = error ? "unknown" : file_system_of(absolute.string());
  return identity;
}

std::string processor_name() {
  std::ifstream info("/proc/cpuinfo");
  std::string line;
  while (std::getline(info, line)) {
    if (!line.starts_with("model name")) continue;
    const std::size_t at = line.find(": ");
    if (at != std::string::npos) return line.substr(at + 2);
  }
  return "unknown";
}

std::uint64_t n_cores_of_node() {
  return static_cast<std::uint64_t>(std::max(::sysconf(_SC_NPROCESSORS_ONLN), 1L));
}

/// Return the type of the mount whose mount point is the longest prefix of `folder`.
std::string file_system_of(const std::string& folder) {
  std::ifstream mounts("/proc/self/mounts");
  std::string line;
  std::string best_type = "unknown";
  std::size_t best_length = 0;
  while (std::getline(mounts, line)) {
    std::istringstream words(line);
    std::string device;
    std::string place;
    std::string type;
    words >> device >> place >> type;
    if (place == "/") place.clear();
    const bool covers =
        folder.starts_with(place) && (folder.size() == place.size() || folder[place.size()] == '/');
    if (covers && place.size() >= best_length) {
      best_length = place.size();
      best_type = type;
    }
  }
  return best_type;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

Result<FolderFacts> find_folder_facts(const std::string& folder) {
  struct stat facts {};
  struct statvfs space {};
  if (::stat(folder.c_str(), &facts) != 0 || ::statvfs(folder.c_str(), &space) != 0) {
    return status_from_errno(errno, "folder \"" + folder + "\"");
  }
  FolderFacts found;
  found.free_bytes = std::uint64_t{space.f_bavail} * space.f_frsize;
  found.block_bytes = static_cast<std::uint64_t>(std::max<long>(facts.st_blksize, 1));
  return found;
}

}  // namespace tailrace
