// Names in folders: what may be replaced, what a new file is called until it is whole, and how it
// gets its name so that neither a crash nor another program's file is lost. For files that stand
// beside Storage: outputs, journals, exports, recovery. POSIX calls only.

#pragma once

#include <cstdint>
#include <string>

#include "trz/base/status.hpp"

namespace tailrace {

/// The suffix of a new file's name until it is whole: until its first commit, for an output.
inline constexpr const char* partial_suffix = ".partial";

/// A file descriptor that closes itself.
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

/// A file that is open, and its length then.
struct RegularFile {
  Descriptor at;
  std::uint64_t n_bytes = 0;
};

/// Refuse a path that is a URL ("s3://bucket/run.h5"), by what to use; ok for any other.
/// @error unsupported
Status check_not_url(const std::string& path);

/// Open a file (O_RDONLY, O_NOFOLLOW and the like), and nothing else that has the name: opening or
/// reading a pipe or a device could wait for ever. @error not_found, io_error
/// @error invalid_argument  a folder, pipe, device or socket
Result<RegularFile> open_regular(const std::string& path, int flags);

/// The file that writing to `path` means: where its symbolic links lead, also if nothing is there
/// yet. @error io_error  links that lead in a circle.
Result<std::string> resolve_links(const std::string& path);

/// Which file it is, whatever its names: to know whether a name still leads to what it led to.
class FileIdentity {
 public:
  FileIdentity() = default;  ///< Of no file.
  /// Of what `path` leads to, its links followed; of no file if there is nothing. Asks for neither
  /// size nor times, for which some parallel file systems would have to ask all who write.
  static Result<FileIdentity> of(const std::string& path);

  bool known() const { return inode_ != 0; }
  bool operator==(const FileIdentity& other) const = default;

 private:
  std::uint64_t device_ = 0;
  std::uint64_t inode_ = 0;
};

/// Whether two names are of one file. False if either is of none.
bool same_file(const std::string& a, const std::string& b);

/// Whether a file may be written under this (resolved) name: nothing is there, or a regular file
/// and `replace`. @error invalid_argument  a folder, device, pipe or socket.
/// @error already_exists  a file, without `replace`; the text ends in `how` it can be replaced.
Status check_replaceable(const std::string& path, bool replace, const std::string& how);

/// What a dead job has left under a temporary name.
enum class LeftFile : std::uint8_t {
  none,
  uncommitted,  ///< Begins with zeros, or is empty: bytes without an index.
  committed     ///< Begins with HDF5's signature.
};

/// @error already_exists  what is there is a link, no regular file, or begins with anything else:
/// then it is somebody else's, and must stay.
Result<LeftFile> look_at_left_file(const std::string& partial);

/// What is at a new file's final name when it gets it.
enum class AtName : std::uint8_t {
  nothing,  ///< Or there is an error: what has appeared meanwhile stays.
  replaced  ///< A file there is replaced; its mode and owner go over to the new one.
};

/// Rename a whole file to its final name, durably: with `sync`, the file and the folder are synced
/// before this returns. @error already_exists, io_error, no_space
Status give_name(const std::string& from, const std::string& to, AtName at_name, bool sync);

/// Make created, renamed or removed names in the folder of `path` durable. Some file systems refuse
/// to sync a folder: that is not an error. @error io_error  the sync itself failed.
Status sync_folder_of(const std::string& path);

/// Write all of it at `address`, after short writes and signals too. `what` is for messages.
Status write_fully(int fd, const void* bytes, std::uint64_t n_bytes, std::uint64_t address,
                   const std::string& what);

}  // namespace tailrace
