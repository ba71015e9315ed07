// Reads small files.

#include "core/environment.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

namespace tailrace {
namespace {

Result<std::string> read_from(int descriptor, const std::string& path, std::uint64_t bytes_max) {
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0)
    return status_from_errno(errno, "cannot read \"" + path + "\"");
  if (!S_ISREG(facts.st_mode)) {
    return Status(Code::invalid_argument, "\"" + path + "\": not a regular file");
  }
  std::string bytes;
  // Do not rely on the size that the file system reports: it may be 0 (/proc), or grow.
  while (bytes.size() <= bytes_max) {
    const std::size_t n_taken = bytes.size();
    bytes.resize(n_taken + 4096);
    const ssize_t n = ::read(descriptor, bytes.data() + n_taken, 4096);
    if (n < 0 && errno != EINTR) return status_from_errno(errno, "cannot read \"" + path + "\"");
    bytes.resize(n_taken + static_cast<std::size_t>(n > 0 ? n : 0));
    if (n == 0) return bytes;
  }
  return Status(Code::invalid_argument, "\"" + path + "\": larger than " +
                                            std::to_string(bytes_max) +
                                            " bytes, the limit for files of this kind");
}

}  // namespace

Result<std::string> read_settings_file(const std::string& path, std::uint64_t bytes_max) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (descriptor < 0) {
    const Status failure = status_from_errno(errno, "cannot read \"" + path + "\"");
    // Programs take not_found as the answer that the data file does not exist.
    if (failure.code() != Code::not_found) return failure;
    return Status(Code::invalid_argument, failure.message());
  }
  Result<std::string> bytes = read_from(descriptor, path, bytes_max);
  ::close(descriptor);
  return bytes;
}

}  // namespace tailrace
