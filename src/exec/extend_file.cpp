// Two ways to a longer file that leave the new end to the kernel.

#include "exec/extend_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include <algorithm>
#include <array>
#include <cerrno>

namespace tailrace {
namespace {

Status extending_failed(const std::string& path) {
  return status_from_errno(errno, "extending \"" + path + "\"");
}

}  // namespace

Status extend_file(int descriptor, std::uint64_t n_bytes, const std::string& path) {
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0) return extending_failed(path);
  if (static_cast<std::uint64_t>(facts.st_size) >= n_bytes) return Status();
  // Only the last byte: what lies before it stays a hole, or what it is.
  while (::fallocate(descriptor, 0, static_cast<off_t>(n_bytes - 1), 1) != 0) {
    if (errno == EINTR) continue;
    if (errno == EOPNOTSUPP || errno == ENOSYS) return append_zeros(descriptor, n_bytes, path);
    return extending_failed(path);
  }
  return Status();
}

Status append_zeros(int descriptor, std::uint64_t n_bytes, const std::string& path) {
  static constexpr std::array<std::byte, 65536> zeros{};
  while (true) {
    struct stat facts {};
    if (::fstat(descriptor, &facts) != 0) return extending_failed(path);
    const auto now = static_cast<std::uint64_t>(facts.st_size);
    if (now >= n_bytes) return Status();
    const std::size_t n = std::min<std::uint64_t>(n_bytes - now, zeros.size());
    const iovec piece{const_cast<std::byte*>(zeros.data()), n};
    if (::pwritev2(descriptor, &piece, 1, 0, RWF_APPEND) < 0 && errno != EINTR) {
      return extending_failed(path);
    }
  }
}

}  // namespace tailrace
