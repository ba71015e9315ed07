// Rank 0 creates the folder; all ranks check that they see it.

#include "run_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>

namespace tailrace::bench {

RunFolder::~RunFolder() {
  std::error_code ignored;
  if (comm_.is_root() && !path_.empty()) std::filesystem::remove_all(path_, ignored);
}

Status RunFolder::make(const std::string& parent) {
  Status made;
  Bytes packed;
  if (comm_.is_root()) {
    std::string path = parent + "/tailrace-bench.XXXXXX";
    if (::mkdtemp(path.data()) == nullptr) {
      made = status_from_errno(errno, "making a folder below \"" + parent + "\"");
    } else {
      // Resolve links, because the kernel reports the files' paths without links.
      path = std::filesystem::canonical(path).string();
      packed.resize(path.size());
      std::memcpy(packed.data(), path.data(), path.size());
      path_ = path;
    }
  }
  TAILRACE_TRY(comm_.agree(made));
  comm_.broadcast(packed, 0);
  path_.assign(reinterpret_cast<const char*>(packed.data()), packed.size());
  const bool seen = std::filesystem::is_directory(path_);
  return comm_.agree(
      seen ? Status() : Status(Code::not_found, "\"" + path_ + "\" is not visible on all ranks"));
}

}  // namespace tailrace::bench
