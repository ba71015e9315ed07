// PosixStorage: complete pwrite and pread on one file, optionally with O_DIRECT; and two ways to
// extend a file.

#include "exec/comm_factory.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/file_limit.hpp"

namespace tailrace {

namespace {

Status extending_failed(const std::string& path) {
  return status_from_errno(errno, "extending \"" + path + "\"");
}

/// Length of the file on the file system's server. A client may have an older length cached when
/// others have written, and zeros appended after that would overwrite their bytes.
Result<std::uint64_t> length_of(int descriptor, const std::string& path) {
  struct statx facts {};
  if (::statx(descriptor, "", AT_EMPTY_PATH | AT_STATX_FORCE_SYNC, STATX_SIZE, &facts) == 0) {
    return std::uint64_t{facts.stx_size};
  }
  struct stat known {};  // The system has no statx.
  if (::fstat(descriptor, &known) != 0) return extending_failed(path);
  return static_cast<std::uint64_t>(known.st_size);
}

}  // namespace

Status extend_file(int descriptor, std::uint64_t n_bytes, const std::string& path) {
  const Result<std::uint64_t> now = length_of(descriptor, path);
  if (!now.ok() || *now >= n_bytes) return now.status();
  const FileLimitScope scope;
  // Allocate only the last byte: the bytes before it stay a hole, or unchanged.
  while (::fallocate(descriptor, 0, static_cast<off_t>(n_bytes - 1), 1) != 0) {
    if (errno == EINTR) continue;
    if (errno == EOPNOTSUPP || errno == ENOSYS) return append_zeros(descriptor, n_bytes, path);
    return extending_failed(path);
  }
  return Status();
}

Status append_zeros(int descriptor, std::uint64_t n_bytes, const std::string& path) {
  static constexpr std::array<std::byte, 65536> zeros{};
  const FileLimitScope scope;
  while (true) {
    const Result<std::uint64_t> now = length_of(descriptor, path);
    if (!now.ok() || *now >= n_bytes) return now.status();
    const std::size_t n = std::min<std::uint64_t>(n_bytes - *now, zeros.size());
    const iovec piece{const_cast<std::byte*>(zeros.data()), n};
    if (::pwritev2(descriptor, &piece, 1, 0, RWF_APPEND) < 0 && errno != EINTR) {
      return extending_failed(path);
    }
  }
}

// --- PosixStorage: complete pwrite and pread on one file, optionally bypassing the page cache.
//
// With direct I/O a second descriptor is open with O_DIRECT. Runs of at least one aligned block are
// copied into an aligned bounce buffer and written through it. Unaligned heads and tails go through
// the page cache, on the first descriptor.

namespace {

constexpr std::uint64_t kDirectBlock = 4096;                // accepted by every local file system
constexpr std::size_t kBounceBytes = std::size_t{4} << 20;  // container notes: 4 MiB writes suffice

/// Amount that is submitted to the disk at once, ahead of a sync. Smaller amounts are many
/// requests; of larger ones, the sync waits for the last.
constexpr std::uint64_t kSyncAheadBytes = 8U << 20;

/// Descriptor that is closed by its last user.
struct OwnedDescriptor {
  explicit OwnedDescriptor(int own) : number(own) {}
  OwnedDescriptor(const OwnedDescriptor&) = delete;
  OwnedDescriptor& operator=(const OwnedDescriptor&) = delete;
  ~OwnedDescriptor() { ::close(number); }
  const int number;
};

class PosixStorage final : public Storage {
 public:
  PosixStorage(std::string path, int descriptor, int direct_descriptor)
      : path_(std::move(path)), descriptor_(descriptor), direct_descriptor_(direct_descriptor) {}
  ~PosixStorage() override {
    ::close(descriptor_);
    if (direct_descriptor_ >= 0) ::close(direct_descriptor_);
    std::free(bounce_);
  }

  Status write_at(std::uint64_t address, std::span<const std::byte> bytes) override {
    return write_pieces_at(address, std::span<const std::span<const std::byte>>(&bytes, 1));
  }

  Status write_pieces_at(std::uint64_t address,
                         std::span<const std::span<const std::byte>> pieces) override {
    std::uint64_t n_bytes = 0;
    for (const std::span<const std::byte> piece : pieces) n_bytes += piece.size();
    if (direct_descriptor_ >= 0 && n_bytes >= 2 * kDirectBlock)
      return write_direct(address, pieces);
    return write_gathered(address, pieces);
  }

  Status read_at(std::uint64_t address, std::span<std::byte> bytes) override {
    const std::shared_ptr<const OwnedDescriptor> renewed = renewed_descriptor();
    const int descriptor = renewed != nullptr ? renewed->number : descriptor_;
    while (!bytes.empty()) {
      const ssize_t n =
          ::pread(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(address));
      if (n < 0 && errno == EINTR) continue;
      if (n < 0) return status_from_errno(errno, "read of \"" + path() + "\"");
      if (n == 0) {
        return Status(Code::corrupt, "\"" + path() + "\" is truncated: it ends at byte " +
                                         std::to_string(address) + ", " +
                                         std::to_string(bytes.size()) + " bytes too early");
      }
      bytes = bytes.subspan(static_cast<std::size_t>(n));
      address += static_cast<std::uint64_t>(n);
    }
    return Status();
  }

  /// Drop what clients have cached for reads. Opens the file again, since JuiceFS and sshfs cache
  /// data that was read (ahead, too) per descriptor.
  void renew_reads() override {
    if (const int opened = open_again(); opened >= 0) {
      auto renewed = std::make_shared<const OwnedDescriptor>(opened);
      const std::scoped_lock lock(reading_mutex_);
      reading_.swap(renewed);
    }
    // Renew the length as well: the kernel may use a value of up to a second ago. GlusterFS answers
    // from its cache except after a sync.
    // The system reports this error only once.
    if (::fdatasync(descriptor_) != 0) unsynced_errno_ = errno;
    (void)length_of(descriptor_, path());
    // Drop the kernel's cached pages with this node's own bytes as well. FUSE drops them if the
    // modification time has changed, but sshfs reports that time in whole seconds.
    (void)::posix_fadvise(descriptor_, 0, 0, POSIX_FADV_DONTNEED);
  }

  Result<std::uint64_t> file_bytes() override {
    struct stat facts {};
    if (::fstat(descriptor_, &facts) != 0)
      return status_from_errno(errno, "stat of \"" + path() + "\"");
    return static_cast<std::uint64_t>(facts.st_size);
  }

  Status extend(std::uint64_t n_bytes) override {
    return extend_file(descriptor_, n_bytes, path());
  }

  Status resize(std::uint64_t n_bytes) override {
    const FileLimitScope scope;
    if (::ftruncate(descriptor_, static_cast<off_t>(n_bytes)) == 0) return Status();
    return status_from_errno(errno, "resizing \"" + path_ + "\"");
  }

  void expect_sync() override { syncs_ahead_ = true; }

  Status sync() override {
    const int before = unsynced_errno_.exchange(0);
    if (::fdatasync(descriptor_) == 0 && before == 0) return Status();
    return status_from_errno(before != 0 ? before : errno, "sync of \"" + path() + "\"");
  }

  const std::string& path() const override { return renamed_ ? new_path_ : path_; }
  void set_path(const std::string& path) override {
    if (renamed_ || path == path_) return;
    new_path_ = path;
    renamed_ = true;
  }

 private:
  Status write_failed(std::uint64_t address) const {
    return status_from_errno(errno,
                             "write of \"" + path() + "\" at byte " + std::to_string(address));
  }

  /// Submit one pwritev per IOV_MAX pieces; continues after short writes and signals.
  Status write_gathered(std::uint64_t address, std::span<const std::span<const std::byte>> pieces) {
    std::vector<iovec> vectors;
    for (const std::span<const std::byte> piece : pieces) {
      if (!piece.empty()) vectors.push_back({const_cast<std::byte*>(piece.data()), piece.size()});
    }
    const FileLimitScope scope;
    const std::uint64_t start = address;
    std::size_t next = 0;
    while (next < vectors.size()) {
      const int n_vectors = static_cast<int>(std::min<std::size_t>(vectors.size() - next, IOV_MAX));
      ssize_t n = ::pwritev(descriptor_, &vectors[next], n_vectors, static_cast<off_t>(address));
      if (n < 0 && errno == EINTR) continue;
      if (n == 0) errno = ENOSPC;  // a device that accepts nothing will never accept anything
      if (n <= 0) return write_failed(address);
      address += static_cast<std::uint64_t>(n);
      while (n > 0) {
        iovec& first = vectors[next];
        const std::size_t taken = std::min(first.iov_len, static_cast<std::size_t>(n));
        first.iov_base = static_cast<std::byte*>(first.iov_base) + taken;
        first.iov_len -= taken;
        n -= static_cast<ssize_t>(taken);
        if (first.iov_len == 0) ++next;
      }
    }
    if (syncs_ahead_) sync_ahead(start, address);
    return Status();
  }

  /// Start writing back exactly the bytes that were written, without waiting. Pages that a
  /// neighbouring rank has only half filled would otherwise be written twice.
  void sync_ahead(std::uint64_t start, std::uint64_t end) {
    {
      const std::scoped_lock lock(ahead_mutex_);
      if (n_ahead_ == 0) ahead_ = {start, end};
      ahead_ = {std::min(ahead_.start, start), std::max(ahead_.end, end)};
      n_ahead_ += end - start;
      if (n_ahead_ < kSyncAheadBytes) return;
      n_ahead_ = 0;
      start = ahead_.start;
      end = ahead_.end;
    }
    if (::sync_file_range(descriptor_, static_cast<off_t>(start), static_cast<off_t>(end - start),
                          SYNC_FILE_RANGE_WRITE) == 0) {
      return;
    }
    // The sync reports errors that are recorded on pages. An error that only this call returned may
    // not be reported again, so store it.
    const bool lost = errno == EIO || errno == ENOSPC || errno == EDQUOT;
    if (lost) unsynced_errno_ = errno;
  }

  Status write_direct(std::uint64_t address, std::span<const std::span<const std::byte>> pieces) {
    const std::scoped_lock lock(bounce_mutex_);
    if (bounce_ == nullptr && ::posix_memalign(&bounce_, kDirectBlock, kBounceBytes) != 0) {
      bounce_ = nullptr;
      return Status(Code::out_of_memory, "\"" + path() +
                                             "\": no memory for the buffer of direct writes (" +
                                             std::to_string(kBounceBytes) + " bytes)");
    }
    std::size_t held = 0;
    for (std::span<const std::byte> piece : pieces) {
      while (!piece.empty()) {
        const std::size_t taken = std::min(piece.size(), kBounceBytes - held);
        std::memcpy(static_cast<std::byte*>(bounce_) + held, piece.data(), taken);
        piece = piece.subspan(taken);
        held += taken;
        if (held == kBounceBytes) TAILRACE_TRY(drain_bounce(address, held));
      }
    }
    return drain_bounce(address, held);
  }

  /// Write the bounce buffer's bytes: unaligned head and tail through the page cache.
  Status drain_bounce(std::uint64_t& address, std::size_t& held) {
    auto* bytes = static_cast<std::byte*>(bounce_);
    const std::uint64_t to_boundary = (kDirectBlock - address % kDirectBlock) % kDirectBlock;
    const std::size_t head = static_cast<std::size_t>(std::min<std::uint64_t>(to_boundary, held));
    if (head > 0) {
      const std::span<const std::byte> piece(bytes, head);
      TAILRACE_TRY(write_gathered(address, std::span(&piece, 1)));
      address += head;
      held -= head;
      std::memmove(bytes, bytes + head, held);  // O_DIRECT also needs aligned memory
    }
    const std::size_t body = held - held % kDirectBlock;
    const FileLimitScope scope;
    std::size_t done = 0;
    while (done < body) {
      const ssize_t n = ::pwrite(direct_descriptor_, bytes + done, body - done,
                                 static_cast<off_t>(address + done));
      if (n < 0 && errno == EINTR) continue;
      if (n <= 0) return write_failed(address + done);
      done += static_cast<std::size_t>(n);
      // after a short write the rest goes through the page cache
      if (done % kDirectBlock != 0) break;
    }
    if (done < held) {
      const std::span<const std::byte> rest(bytes + done, held - done);
      TAILRACE_TRY(write_gathered(address + done, std::span(&rest, 1)));
    }
    address += held;
    held = 0;
    return Status();
  }

  std::string path_;
  std::string new_path_;  ///< Constant once renamed_ is true.
  std::atomic<bool> renamed_ = false;
  int descriptor_;
  int direct_descriptor_;
  std::atomic<bool> syncs_ahead_ = false;
  std::mutex ahead_mutex_;
  struct {
    std::uint64_t start = 0;
    std::uint64_t end = 0;
  } ahead_;                              ///< Range around the writes since the last write-back.
  std::uint64_t n_ahead_ = 0;            ///< Bytes written in it.
  std::atomic<int> unsynced_errno_ = 0;  ///< Error of a sync outside sync(), reported there.
  mutable std::mutex reading_mutex_;
  /// Set by renew_reads(). Readers hold a reference.
  std::shared_ptr<const OwnedDescriptor> reading_;
  std::shared_ptr<const OwnedDescriptor> renewed_descriptor() const {
    const std::scoped_lock lock(reading_mutex_);
    return reading_;
  }

  /// Open the file again through /proc, since its name may lead to another file. A client that
  /// resolves names nevertheless (sshfs) does not find a file that another node has renamed. Then
  /// open the new name, which is another inode for this client. @returns -1 if that fails.
  int open_again() const {
    const std::string own = "/proc/self/fd/" + std::to_string(descriptor_);
    int opened = ::open(own.c_str(), O_RDONLY | O_CLOEXEC);
    const bool by_name = opened < 0 && errno == ENOENT && renamed_;
    if (by_name) opened = ::open(path().c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (opened < 0) return -1;
    struct stat before {};
    struct stat now {};
    const bool known = ::fstat(descriptor_, &before) == 0 && ::fstat(opened, &now) == 0;
    const bool same = known && before.st_dev == now.st_dev && S_ISREG(now.st_mode) &&
                      (by_name || before.st_ino == now.st_ino);
    if (same) return opened;
    ::close(opened);
    return -1;
  }

  std::mutex bounce_mutex_;
  void* bounce_ = nullptr;
};

}  // namespace

std::unique_ptr<Storage> storage_of_descriptor(int descriptor, const std::string& name) {
  return std::make_unique<PosixStorage>(name, descriptor, -1);
}

Result<std::unique_ptr<Storage>> open_posix_storage(const std::string& path, bool create,
                                                    bool direct_io) {
  const int flags = O_RDWR | O_CLOEXEC | (create ? O_CREAT | O_EXCL | O_NOFOLLOW : 0);
  const int descriptor = ::open(path.c_str(), flags, 0666);
  if (descriptor < 0 && create && errno == ENOENT) {
    const std::size_t slash = path.rfind('/');
    const std::string folder = slash == std::string::npos ? "." : path.substr(0, slash);
    return Status(Code::not_found,
                  "cannot create \"" + path + "\": folder \"" + folder + "\" does not exist");
  }
  if (descriptor < 0) return status_from_errno(errno, "opening \"" + path + "\" for writing");
  // Every rank holds a shared lock until it closes the file. So neither `tailrace recover` nor a
  // writing HDF5 mistakes it for the file of a dead job. Ignored by file systems without locks.
  (void)::flock(descriptor, LOCK_SH | LOCK_NB);
  int direct_descriptor = -1;
  if (direct_io) {
    direct_descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | O_DIRECT);
    if (direct_descriptor < 0) {
      const Status refused = status_from_errno(errno, "opening \"" + path + "\" with O_DIRECT");
      ::close(descriptor);
      return refused;
    }
  }
  return std::unique_ptr<Storage>(
      std::make_unique<PosixStorage>(path, descriptor, direct_descriptor));
}

}  // namespace tailrace
