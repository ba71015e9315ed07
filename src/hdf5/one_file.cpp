// A node's view of a file, as text, compared repeatedly with rank 0's view.

#include "hdf5/one_file.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <utility>

#include "core/byte_stream.hpp"
#include "hdf5/file_names.hpp"
#include "hdf5/writer_lock.hpp"

namespace tailrace {
namespace {

/// Delays before each further check. A client that caches file attributes for a second restarts
/// that second at each request, so some delays must be longer.
constexpr std::array<std::chrono::milliseconds, 7> kBeforeLooks = {
    std::chrono::milliseconds(0),    std::chrono::milliseconds(100),
    std::chrono::milliseconds(200),  std::chrono::milliseconds(1200),
    std::chrono::milliseconds(1200), std::chrono::milliseconds(1200),
    std::chrono::milliseconds(1200)};
constexpr std::uint64_t kEndBytes = 4096;

/// Alignment of the mark. It keeps the mark out of the pages that are written next, since clients
/// cache the pages that they have read.
constexpr std::uint64_t kMarkAlignment = 65536;

/// Mark that rank 0 writes into the file for other ranks to find.
struct Mark {
  std::uint64_t address = 0;
  std::array<std::uint32_t, 8> words{};
};

std::string bytes_at(int fd, std::uint64_t address, std::uint64_t n_bytes) {
  std::array<char, kEndBytes> bytes{};
  const ssize_t n = ::pread(fd, bytes.data(), n_bytes, static_cast<off_t>(address));
  return {bytes.data(), static_cast<std::size_t>(std::max<ssize_t>(n, 0))};
}

/// Refresh this client's view; see refresh_file(). @returns false if this client's view is stale:
/// the name leads to another file, or the file is known to exist (`is_there`) and is not visible
/// here
bool ask_server(const std::string& path, std::uint64_t n_bytes, bool is_there = false) {
  const Result<RegularFile> file = open_regular(path, O_RDONLY);
  if (!file.ok()) return !is_there || file.status().code() != Code::not_found;
  // GlusterFS answers statx from its cache except after a sync. A delayed write gets the time of
  // its request. It then changes bytes, but no time stamp by which the kernel could detect stale
  // pages.
  const int fd = file->at.fd();
  struct statx facts {};
  (void)::fdatasync(fd);
  const int flags = AT_EMPTY_PATH | AT_STATX_FORCE_SYNC;
  const bool known = ::statx(fd, "", flags, STATX_BASIC_STATS, &facts) == 0;
  if (!known && (errno == ENOENT || errno == ESTALE)) return false;
  const auto length = static_cast<off_t>(std::min<std::uint64_t>(n_bytes, INT64_MAX));
  const auto last = static_cast<off_t>(facts.stx_size) - length;
  (void)::posix_fadvise(fd, 0, length, POSIX_FADV_DONTNEED);
  (void)::posix_fadvise(fd, std::max<off_t>(last, 0), length, POSIX_FADV_DONTNEED);
  return true;
}

/// The length and both ends of a file; if it cannot be opened, the reason.
std::string ends_of(const std::string& path) {
  ask_server(path, kEndBytes);
  const Result<RegularFile> file = open_regular(path, O_RDONLY);
  if (!file.ok()) return file.status().message();
  const std::uint64_t n_bytes = file->n_bytes;
  const std::uint64_t last = std::min(n_bytes, kEndBytes);
  return std::to_string(n_bytes) + " bytes: " + bytes_at(file->at.fd(), 0, last) +
         bytes_at(file->at.fd(), n_bytes - last, last);
}

/// Start of a view, for an error, without the file's bytes.
std::string first_line(const std::string& seen) {
  return seen.substr(0, seen.find_first_of(":\n"));
}

/// Refresh the directory entry. Some network file systems (NFS) refresh a folder's names when it is
/// opened. Others (GlusterFS) detect only by listing the folder that a known name leads to another
/// file.
void refresh_name(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  const std::string name = slash == std::string::npos ? path : path.substr(slash + 1);
  DIR* const listing = ::opendir(folder.c_str());
  if (listing == nullptr) return;
  const dirent* entry = ::readdir(listing);
  while (entry != nullptr && entry->d_name != name) entry = ::readdir(listing);
  ::closedir(listing);
}

/// Repeat `look` until it returns true, for some seconds.
bool look_again_and_again(const std::string& path, const std::function<bool()>& look) {
  if (look()) return true;
  return std::any_of(kBeforeLooks.begin(), kBeforeLooks.end(), [&](const auto& before_look) {
    std::this_thread::sleep_for(before_look);
    refresh_name(path);
    return look();
  });
}

Status not_one_file(const std::string& path, const std::string& seen) {
  return Status(Code::io_error, "\"" + path + "\" on this node is not the file that rank 0 has" +
                                    seen + "; is the shared file system mounted?");
}

Status look_for(const std::string& expected, const std::string& path) {
  std::string seen;
  const auto look = [&] { return (seen = ends_of(path)) == expected; };
  if (look_again_and_again(path, look)) return Status();
  return not_one_file(
      path, " (rank 0: " + first_line(expected) + "; this node: " + first_line(seen) +
                (first_line(seen) == first_line(expected) ? ", but other contents)" : ")"));
}

bool has_mark(Storage& storage, const Mark& mark) {
  std::array<std::uint32_t, 8> words{};
  return storage.read_at(mark.address, std::as_writable_bytes(std::span(words))).ok() &&
         words == mark.words;
}

Status look_for(const Mark& mark, const std::string& path, const std::unique_ptr<Storage>& storage,
                const std::function<Status()>& open_again) {
  if (has_mark(*storage, mark)) return Status();
  Status opened;
  const auto look = [&] {
    opened = open_again();
    ask_server(path, 0);
    return opened.ok() && has_mark(*storage, mark);
  };
  if (look_again_and_again(path, look)) return Status();
  return opened.ok() ? not_one_file(path, "") : opened;
}

/// Write a mark after the file's end and append it to `message`. Rank 0.
Status write_mark(Storage& storage, std::uint64_t end, ByteWriter& message) {
  Mark mark;
  try {
    std::random_device random;
    for (std::uint32_t& word : mark.words) word = random() | 1U;  // Nonzero, unlike holes.
  } catch (const std::runtime_error&) {
    return Status(Code::io_error, "cannot read random numbers from the system");
  }
  mark.address = (end / kMarkAlignment + 1) * kMarkAlignment;
  TAILRACE_TRY(storage.write_at(mark.address, std::as_bytes(std::span(mark.words))));
  TAILRACE_TRY(storage.sync());
  message.add(mark);
  return Status();
}

}  // namespace

void refresh_file(const std::string& path, std::uint64_t n_bytes) {
  look_again_and_again(path, [&] { return ask_server(path, n_bytes); });
}

void see_last_commit(const Comm& comm, const std::string& path) {
  if (comm.place().empty()) return;
  look_again_and_again(path, [&] { return ask_server(path, UINT64_MAX, true); });
}

void refresh_file_on_nodes(const Comm& comm, const std::string& path) {
  if (!comm.place().empty() && comm.leads_node()) refresh_file(path, UINT64_MAX);
}

Status check_one_file(Comm& comm, const std::string& path) {
  if (comm.place().empty()) return Status();  // A single node.
  Bytes sent;
  if (comm.is_root() && writer_of(path).empty()) {
    const std::string text = ends_of(path);
    const auto* bytes = reinterpret_cast<const std::byte*>(text.data());
    sent = {bytes, bytes + text.size()};
  }
  comm.broadcast(sent, 0);
  Status mine;
  if (!comm.is_root() && comm.leads_node() && !sent.empty()) {
    mine = look_for({reinterpret_cast<const char*>(sent.data()), sent.size()}, path);
  }
  return comm.agree(mine);
}

Status check_one_output(Comm& comm, const std::string& path,
                        const std::unique_ptr<Storage>& storage, std::uint64_t end,
                        const std::function<Status()>& open_again) {
  if (comm.place().empty()) return Status();  // A single node.
  std::uint64_t n_bytes = UINT64_MAX;         // Length without the mark, on rank 0.
  const Result<Bytes> received = broadcast_from_root(comm, [&](ByteWriter& message) -> Status {
    TAILRACE_TAKE(n_bytes, storage->file_bytes());
    return write_mark(*storage, std::max(n_bytes, end), message);
  });
  Status seen = received.status();
  if (received.ok()) {
    const auto mark = ByteReader(*received).take<Mark>();
    const auto look = [&] { return look_for(mark, path, storage, open_again); };
    seen = comm.agree(comm.is_root() ? Status() : local_part(look));
  }
  if (n_bytes != UINT64_MAX) {
    const Status cut = storage->resize(n_bytes);
    if (seen.ok()) seen = cut;
  }
  TAILRACE_TRY(agree_with_root(comm, seen));
  refresh_file_on_nodes(comm, path);  // Drop the mark from caches.
  return Status();
}

}  // namespace tailrace
