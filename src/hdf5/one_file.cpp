// What a node sees of a file, as a text, and looking again until it is what rank 0 sees.

#include "hdf5/one_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <string_view>
#include <thread>

namespace tailrace {
namespace {

constexpr int looks = 50;
constexpr std::chrono::milliseconds between_looks{100};
constexpr std::uint64_t end_bytes = 4096;

std::string bytes_at(int fd, std::uint64_t address, std::uint64_t n_bytes) {
  std::array<char, end_bytes> bytes{};
  const ssize_t n = ::pread(fd, bytes.data(), n_bytes, static_cast<off_t>(address));
  return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

/// The length and both ends of a file; why it cannot be opened, if so.
std::string ends_of(const std::string& path) {
  refresh_file(path, end_bytes);
  const Result<RegularFile> file = open_regular(path, O_RDONLY);
  if (!file.ok()) return file.status().message();
  const std::uint64_t n_bytes = file->n_bytes;
  const std::uint64_t last = std::min(n_bytes, end_bytes);
  return std::to_string(n_bytes) + " bytes: " + bytes_at(file->at.fd(), 0, last) +
         bytes_at(file->at.fd(), n_bytes - last, last);
}

/// For an error: the first line of what was seen, without a file's bytes.
std::string first_words(const std::string& seen) {
  return seen.substr(0, seen.find_first_of(":\n"));
}

/// Some network file systems ask their server about the names of a folder when it is opened.
void refresh_folder(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  if (DIR* listing = ::opendir(folder.c_str()); listing != nullptr) ::closedir(listing);
}

Status look_for(const std::string& expected, const std::string& path, bool written) {
  const std::string name = written ? lock_path_of(path) : path;
  std::string seen;
  for (int look = 0; look < looks; ++look) {
    if (look > 0) std::this_thread::sleep_for(between_looks);
    if (look > 0) refresh_folder(name);
    seen = ends_of(name);
    if (seen == expected) return Status();
  }
  return Status(Code::io_error, "\"" + path + "\" is not rank 0's file here: of \"" + name +
                                    "\" rank 0 sees " + first_words(expected) + ", this node " +
                                    first_words(seen) +
                                    ", or other contents; is the shared file system mounted?");
}

}  // namespace

void refresh_file(const std::string& path, std::uint64_t n_bytes) {
  const Result<RegularFile> file = open_regular(path, O_RDONLY);
  if (!file.ok()) return;
  // GlusterFS answers the question from its memory but after a sync. It gives a write the time at
  // which it was asked for, so that one which comes late changes the bytes and no time by which the
  // kernel could tell that what it keeps is old.
  struct statx facts {};
  (void)::fdatasync(file->at.fd());
  (void)::statx(file->at.fd(), "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_BASIC_STATS, &facts);
  const auto length = static_cast<off_t>(std::min<std::uint64_t>(n_bytes, INT64_MAX));
  const auto last = static_cast<off_t>(facts.stx_size) - length;
  (void)::posix_fadvise(file->at.fd(), 0, length, POSIX_FADV_DONTNEED);
  (void)::posix_fadvise(file->at.fd(), std::max<off_t>(last, 0), length, POSIX_FADV_DONTNEED);
}

void refresh_file_on_nodes(const Comm& comm, const std::string& path) {
  if (!comm.place().empty() && comm.leads_node()) refresh_file(path, UINT64_MAX);
}

Status check_one_file(Comm& comm, const std::string& path, const WriterLock* lock) {
  if (comm.place().empty()) return Status();  // a single node
  Bytes told;
  Status mine;
  if (comm.is_root()) {
    const bool held = lock != nullptr && lock->held();
    if (held) mine = lock->sync();  // Others may see it only then.
    // 'f' is also for a file in a folder that cannot have a lock file.
    std::string text = held ? "l" + ends_of(lock_path_of(path)) : "f" + ends_of(path);
    if (lock == nullptr && !writer_of(path).empty()) text.clear();
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    told = {bytes, bytes + text.size()};
  }
  comm.broadcast(told, 0);
  const std::string text(reinterpret_cast<const char*>(told.data()), told.size());
  if (!comm.is_root() && comm.leads_node() && !text.empty()) {
    mine = look_for(text.substr(1), path, text[0] == 'l');
  }
  return comm.agree(mine);
}

}  // namespace tailrace
