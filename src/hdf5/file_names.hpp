// Names in folders: which names may be replaced, the temporary name of a new file, and its rename
// to the final name. Neither a crash nor the rename loses another program's file. Used for outputs,
// journals, exports and recovery, where Storage does not apply. POSIX calls only.

#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "trz/base/status.hpp"

namespace tailrace {

/// Suffix of a new file's name until the file is complete: for an output, until its first commit.
inline constexpr const char* kPartialSuffix = ".partial";

/// Return the name of a file that accompanies `path`: its name with `suffix` (".lock"). If that is
/// longer than a name may be (255 bytes), the end of the name becomes "~" and its hash.
std::string companion_path(const std::string& path, std::string_view suffix);
/// Return the temporary name of the new file `path`.
inline std::string partial_path_of(const std::string& path) {
  return companion_path(path, kPartialSuffix);
}

/// Owns a file descriptor and closes it.
class Descriptor {
 public:
  explicit Descriptor(int fd = -1) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) reset(other.release());
    return *this;
  }

  int fd() const { return fd_; }
  bool open() const { return fd_ >= 0; }
  void close() { reset(-1); }
  void reset(int fd);
  int release() {
    const int fd = fd_;
    fd_ = -1;
    return fd;
  }

 private:
  int fd_;
};

/// An open file, and its length when it was opened.
struct RegularFile {
  Descriptor at;
  std::uint64_t n_bytes = 0;
};

/// Refuse a path that is a URL ("s3://bucket/run.h5"); the error text says what to use instead.
/// @error unsupported
Status check_not_url(const std::string& path);

/// Open a regular file (O_RDONLY, O_NOFOLLOW and the like). Refuses everything else, since opening
/// or reading a pipe or a device could block forever. @error not_found, io_error
/// @error invalid_argument  a folder, pipe, device or socket
Result<RegularFile> open_regular(const std::string& path, int flags);

/// Follow the symbolic links of `path` to the file that a write would reach, which need not exist
/// yet. @error io_error  a loop of links
Result<std::string> resolve_links(const std::string& path);

/// Identity of a file, whatever its names; detects whether a name still leads to the same file.
class FileIdentity {
 public:
  FileIdentity() = default;  ///< No file.
  /// Identity of the file that `path` leads to, its links followed; unknown if no such file exists.
  /// Does not request size or times: for those, some parallel file systems query every writing
  /// client.
  static Result<FileIdentity> of(const std::string& path);

  bool known() const { return inode_ != 0; }
  bool operator==(const FileIdentity& other) const = default;

 private:
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
};

/// True if both names lead to one file. False if either leads to none.
bool same_file(const std::string& a, const std::string& b);

/// Check that a file may be written under this resolved name: no file has it, or a regular file
/// does and `replace` is set. @error invalid_argument  a folder, device, pipe or socket
/// @error already_exists  a file, without `replace`; the text ends in `how`, the way to replace it
Status check_replaceable(const std::string& path, bool replace, const std::string& how);

/// Content of a file that a dead job left under a temporary name.
enum class LeftFile : std::uint8_t {
  none,
  uncommitted,  ///< Starts with zeros, or is empty: bytes without an index.
  committed     ///< Starts with HDF5's signature.
};

/// Classify a file left under a temporary name. @error already_exists  a link, not a regular file,
/// or a file with any other start: it belongs to another program and must stay
Result<LeftFile> look_at_left_file(const std::string& partial);

/// Treatment of an existing file with the final name of a new file.
enum class AtName : std::uint8_t {
  nothing,  ///< None may exist: if a file has appeared meanwhile, it stays and the rename fails.
  replaced  ///< An existing file is replaced; the new file inherits its mode and owner.
};

/// Rename a complete file to its final name. With `sync`, durably: file and folder are synced
/// before this returns. @error already_exists, io_error, no_space
Status give_name(const std::string& from, const std::string& to, AtName at_name, bool sync);

/// Make created, renamed or removed names in the folder of `path` durable. A file system that
/// refuses to sync a folder is not an error. @error io_error  the sync itself failed
Status sync_folder_of(const std::string& path);

/// Write all bytes at `address`; continues after short writes and signals. `what` is for messages.
Status write_fully(int fd, const void* bytes, std::uint64_t n_bytes, std::uint64_t address,
                   const std::string& what);

}  // namespace tailrace
