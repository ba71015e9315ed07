// Follows links, checks and renames files.

#include "hdf5/file_names.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>

#include "core/file_limit.hpp"

#if defined(__linux__)
#include <linux/fs.h>
#include <sys/syscall.h>
#endif

namespace tailrace {
namespace {

constexpr int kLinksMax = 40;  // Same limit as in Linux.

std::string in_quotes(const std::string& path) { return "\"" + path + "\""; }

std::string folder_above(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash + 1);
}

/// Rename to an unused name: with the system's own call, or else by a second link.
int rename_to_free_name(const char* from, const char* to) {
#if defined(__linux__) && defined(SYS_renameat2) && defined(RENAME_NOREPLACE)
  if (::syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  if (errno != EINVAL && errno != ENOSYS) return -1;
#endif
  if (::link(from, to) == 0) return ::unlink(from);
  if (errno != EPERM && errno != EOPNOTSUPP && errno != EMLINK) return -1;
  // The file system supports neither: a file that appears between these two calls is lost.
  if (::access(to, F_OK) == 0) {
    errno = EEXIST;
    return -1;
  }
  return std::rename(from, to);
}

/// Copy the old file's owner and permissions to the new one. Setting the owner may require root;
/// without permission only the group is set.
Status take_over_rights(const std::string& from, const struct stat& old) {
  struct stat now {};
  if (::stat(from.c_str(), &now) != 0)
    return status_from_errno(errno, "cannot stat " + in_quotes(from));
  if ((now.st_uid != old.st_uid || now.st_gid != old.st_gid) &&
      ::chown(from.c_str(), old.st_uid, old.st_gid) != 0) {
    (void)!::chown(from.c_str(), static_cast<uid_t>(-1), old.st_gid);
  }
  if (::chmod(from.c_str(), old.st_mode & 07777U) != 0) {
    return status_from_errno(errno, "cannot set the mode of " + in_quotes(from));
  }
  return Status();
}

Status sync_file(const std::string& path) {
  const Descriptor at(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!at.open() || ::fsync(at.fd()) != 0) {
    return status_from_errno(errno, "cannot sync " + in_quotes(path));
  }
  return Status();
}

}  // namespace

std::string companion_path(const std::string& path, std::string_view suffix) {
  const std::size_t start = path.rfind('/') == std::string::npos ? 0 : path.rfind('/') + 1;
  const std::string_view name = std::string_view(path).substr(start);
  if (name.size() + suffix.size() <= NAME_MAX) return path + std::string(suffix);
  std::uint64_t hash = 0xcbf29ce484222325;  // FNV-1a, 64 bits.
  for (const char byte : name) hash = (hash ^ static_cast<unsigned char>(byte)) * 0x100000001b3;
  std::array<char, 18> end{};
  std::snprintf(end.data(), end.size(), "~%016llx", static_cast<unsigned long long>(hash));
  std::size_t kept = NAME_MAX - suffix.size() - (end.size() - 1);
  const auto continues = [&] { return (static_cast<unsigned char>(name[kept]) & 0xC0) == 0x80; };
  while (kept > 0 && continues()) --kept;  // Whole characters of UTF-8.
  return path.substr(0, start + kept) + end.data() + std::string(suffix);
}

void Descriptor::reset(int fd) {
  if (fd_ >= 0) ::close(fd_);
  fd_ = fd;
}

Status check_not_url(const std::string& path) {
  const std::size_t end = path.find("://");
  const bool is_scheme = end != std::string::npos && end > 0 &&
                         path.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789+-.") == end;
  if (!is_scheme) return Status();
  const std::string how = path.starts_with("file:")
                              ? "give the path without file://"
                              : "copy the file here (curl, aws s3 cp, fsspec), or mount its store";
  return Status(Code::unsupported, path + ": URLs are not supported, only paths of files; " + how);
}

Result<RegularFile> open_regular(const std::string& path, int flags) {
  // Without O_NONBLOCK, opening a pipe would wait for a process to open its other end.
  RegularFile file{Descriptor(::open(path.c_str(), flags | O_CLOEXEC | O_NONBLOCK))};
  struct stat facts {};
  if (!file.at.open() || ::fstat(file.at.fd(), &facts) != 0) {
    const int error = errno;
    if (error == ENOENT) TAILRACE_TRY(check_not_url(path));
    // ENXIO: a socket, or a pipe without a reader.
    if (error != ENXIO) return status_from_errno(error, "cannot open " + path);
  } else if (S_ISREG(facts.st_mode)) {
    file.n_bytes = static_cast<std::uint64_t>(facts.st_size);
    return file;
  }
  return Status(Code::invalid_argument,
                path + ": expected a file, found " +
                    (S_ISDIR(facts.st_mode) ? "a folder" : "a pipe, device or socket"));
}

Result<std::string> resolve_links(const std::string& path) {
  std::string at = path;
  for (int n = 0; n < kLinksMax; ++n) {
    std::array<char, PATH_MAX> target{};
    const ssize_t n_bytes = ::readlink(at.c_str(), target.data(), target.size());
    if (n_bytes < 0) return at;  // Not a link, or the file does not exist.
    const std::string next(target.data(), static_cast<std::size_t>(n_bytes));
    const std::string folder = folder_above(at);
    at = next.starts_with('/') || folder == "." ? next : folder + next;
  }
  return status_from_errno(ELOOP, in_quotes(path));
}

Result<FileIdentity> FileIdentity::of(const std::string& path) {
  FileIdentity file;
#if defined(STATX_INO) && defined(AT_STATX_DONT_SYNC)
  struct statx facts {};
  const bool found = ::statx(AT_FDCWD, path.c_str(), AT_STATX_DONT_SYNC, STATX_INO, &facts) == 0;
  file.device_ = std::uint64_t{facts.stx_dev_major} << 32U | facts.stx_dev_minor;
  file.inode_ = facts.stx_ino;
#else
  struct stat facts {};
  const bool found = ::stat(path.c_str(), &facts) == 0;
  file.device_ = static_cast<std::uint64_t>(facts.st_dev);
  file.inode_ = static_cast<std::uint64_t>(facts.st_ino);
#endif
  if (found) return file;
  if (errno == ENOENT || errno == ENOTDIR) return FileIdentity();
  return status_from_errno(errno, in_quotes(path));
}

bool same_file(const std::string& a, const std::string& b) {
  const Result<FileIdentity> of_a = FileIdentity::of(a);
  const Result<FileIdentity> of_b = FileIdentity::of(b);
  return of_a.ok() && of_b.ok() && of_a->known() && *of_a == *of_b;
}

Status check_replaceable(const std::string& path, bool replace, const std::string& how) {
  struct stat facts {};
  if (::stat(path.c_str(), &facts) != 0) return Status();
  if (S_ISDIR(facts.st_mode)) {
    return Status(Code::invalid_argument,
                  in_quotes(path) + " is a folder; the output must be a file");
  }
  if (!S_ISREG(facts.st_mode)) {
    return Status(Code::invalid_argument,
                  in_quotes(path) + " is a device, pipe or socket; the output must be a file");
  }
  if (replace) return Status();
  return Status(Code::already_exists, in_quotes(path) + " already exists; " + how);
}

Result<LeftFile> look_at_left_file(const std::string& partial) {
  struct stat facts {};
  if (::lstat(partial.c_str(), &facts) != 0) return LeftFile::none;
  const auto foreign = [&](const std::string& what) {
    return Status(
        Code::already_exists,
        in_quotes(partial) + ", the temporary name of the new file, " + what + "; move it away");
  };
  if (!S_ISREG(facts.st_mode)) return foreign("is a link, folder or device");
  const Descriptor at(::open(partial.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (!at.open()) return status_from_errno(errno, in_quotes(partial));
  std::array<char, 8> start{};
  const ssize_t n = ::pread(at.fd(), start.data(), start.size(), 0);
  if (n < 0) return status_from_errno(errno, in_quotes(partial));
  const bool hdf5 = std::memcmp(start.data(), "\211HDF\r\n\032\n", start.size()) == 0;
  const bool zeros = std::all_of(start.begin(), start.end(), [](char c) { return c == 0; });
  if (!hdf5 && !zeros) return foreign("was not written by Tailrace");
  return hdf5 ? LeftFile::committed : LeftFile::uncommitted;
}

Status give_name(const std::string& from, const std::string& to, AtName at_name, bool sync) {
  struct stat old {};
  const bool there = at_name == AtName::replaced && ::stat(to.c_str(), &old) == 0;
  if (there && !S_ISREG(old.st_mode)) {
    return Status(Code::invalid_argument,
                  "cannot replace " + in_quotes(to) + ": it is not a regular file");
  }
  if (there) TAILRACE_TRY(take_over_rights(from, old));
  if (sync) TAILRACE_TRY(sync_file(from));
  const int renamed = at_name == AtName::replaced ? std::rename(from.c_str(), to.c_str())
                                                  : rename_to_free_name(from.c_str(), to.c_str());
  if (renamed != 0) {
    if (errno == EEXIST) {
      return Status(
          Code::already_exists,
          in_quotes(to) +
              " was created by another program meanwhile and is unchanged; the new file is " +
              in_quotes(from));
    }
    return status_from_errno(errno, "cannot rename " + in_quotes(from) + " to " + in_quotes(to));
  }
  return sync ? sync_folder_of(to) : Status();
}

Status sync_folder_of(const std::string& path) {
  const std::string folder = folder_above(path);
  const Descriptor at(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!at.open()) return Status();
  if (::fsync(at.fd()) == 0 || errno == EINVAL || errno == EROFS || errno == ENOTSUP) {
    return Status();
  }
  return status_from_errno(errno, "cannot sync folder " + in_quotes(folder));
}

Status write_fully(int fd, const void* bytes, std::uint64_t n_bytes, std::uint64_t address,
                   const std::string& what) {
  const FileLimitScope scope;
  const char* from = static_cast<const char*>(bytes);
  while (n_bytes > 0) {
    const ssize_t n = ::pwrite(fd, from, n_bytes, static_cast<off_t>(address));
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return status_from_errno(n == 0 ? ENOSPC : errno, what);
    from += n;
    n_bytes -= static_cast<std::uint64_t>(n);
    address += static_cast<std::uint64_t>(n);
  }
  return Status();
}

}  // namespace tailrace
