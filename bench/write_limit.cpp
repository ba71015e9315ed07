// The shared bucket, and the functions that stand before libc's.
//
// Invariant 1: in any interval the bytes that were accepted never exceed bandwidth times its
// length,
//   but for one slice per rank and 0.2 ms. Invariant 2: while a rank has bytes to write, no
//   bandwidth is lost to a late wake-up: the next slice of the same write is booked from the end of
//   the one before, not from now. Between two writes of a rank the storage is idle, as a real one
//   would be.

#include "write_limit.hpp"

#include <aio.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace tailrace::bench {
namespace {

/// Ranks that write at the same time take turns at this grain.
constexpr std::uint64_t kSliceBytes = 1U << 20;
/// A sleep takes about 60 us at least, so a write waits only while more than this is booked before
/// its end. Many small writes in a row are then limited as exactly as large ones.
constexpr std::int64_t kQueueNs = 200'000;

struct SharedBucket {
  std::atomic<std::int64_t> free_at_ns;  ///< When the storage has served all that is booked.
  std::atomic<std::uint64_t> n_bytes;
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

struct ActiveLimit {
  SharedBucket* bucket = nullptr;
  std::string folder;  ///< Ends in '/'.
  std::uint64_t bytes_per_s = 0;
};
std::atomic<const ActiveLimit*> active_limit{nullptr};

/// CLOCK_MONOTONIC: one clock for all processes of a node.
std::int64_t now_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void sleep_until(std::int64_t end_ns) {
  const timespec end{end_ns / 1'000'000'000, end_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) {
  }
}

/// Book `n_bytes` that were handed over at `start_ns`, and wait until they are served.
void pass_bucket(const ActiveLimit& limit, std::uint64_t n_bytes, std::int64_t start_ns) {
  limit.bucket->n_bytes += n_bytes;
  if (limit.bytes_per_s == 0) return;
  std::int64_t ready_ns = start_ns;
  while (n_bytes > 0) {
    const std::uint64_t slice = std::min(n_bytes, kSliceBytes);
    const auto slice_ns = static_cast<std::int64_t>(1e9 * static_cast<double>(slice) /
                                                    static_cast<double>(limit.bytes_per_s));
    std::int64_t free_at = limit.bucket->free_at_ns.load();
    std::int64_t end_ns = 0;
    do {
      end_ns = std::max(free_at, ready_ns) + slice_ns;
    } while (!limit.bucket->free_at_ns.compare_exchange_weak(free_at, end_ns));
    if (end_ns - now_ns() > kQueueNs) sleep_until(end_ns);
    ready_ns = end_ns;
    n_bytes -= slice;
  }
}

/// Whether the descriptor is a regular file below the folder of the run.
bool is_counted(const ActiveLimit& limit, int descriptor) {
  struct stat facts {};
  if (::fstat(descriptor, &facts) != 0 || !S_ISREG(facts.st_mode)) return false;
  char link[64];
  char path[PATH_MAX];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", descriptor);
  const ssize_t n = ::readlink(link, path, sizeof path);
  return n > static_cast<ssize_t>(limit.folder.size()) &&
         std::memcmp(path, limit.folder.data(), limit.folder.size()) == 0;
}

/// Do a write by `real`, which returns the bytes written or -1, and pass the bucket for it.
template <class Real>
ssize_t limited(int descriptor, Real&& real) {
  const ActiveLimit* limit = active_limit.load();
  if (limit == nullptr) return real();
  const std::int64_t start_ns = now_ns();
  const ssize_t done = real();
  const int error = errno;
  if (done > 0 && is_counted(*limit, descriptor)) {
    pass_bucket(*limit, static_cast<std::uint64_t>(done), start_ns);
  }
  errno = error;
  return done;
}

/// The function of this name that would have been called without us.
template <class Function>
Function* next_function(const char* name) {
  void* found = ::dlsym(RTLD_NEXT, name);
  TAILRACE_CHECK(found != nullptr);
  return reinterpret_cast<Function*>(found);
}

class SharedWriteLimit final : public WriteLimit {
 public:
  SharedWriteLimit(SharedBucket* bucket, const std::string& folder, std::uint64_t bytes_per_s) {
    limit_.bucket = bucket;
    limit_.folder = folder + "/";
    limit_.bytes_per_s = bytes_per_s;
    active_limit = &limit_;
  }
  ~SharedWriteLimit() override {
    active_limit = nullptr;
    ::munmap(limit_.bucket, sizeof(SharedBucket));
  }
  std::uint64_t n_bytes() const override { return limit_.bucket->n_bytes; }

 private:
  ActiveLimit limit_;
};

/// Map the bucket's file; fresh file bytes are zero, which is a bucket's beginning.
Result<SharedBucket*> map_bucket(const std::string& path, bool create) {
  const int descriptor = ::open(path.c_str(), O_RDWR | O_CLOEXEC | (create ? O_CREAT : 0), 0600);
  if (descriptor < 0) return status_from_errno(errno, "opening \"" + path + "\"");
  Status status;
  if (create && ::ftruncate(descriptor, sizeof(SharedBucket)) != 0) {
    status = status_from_errno(errno, "extending \"" + path + "\"");
  }
  void* mapped = MAP_FAILED;
  if (status.ok()) {
    mapped =
        ::mmap(nullptr, sizeof(SharedBucket), PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED) status = status_from_errno(errno, "mapping \"" + path + "\"");
  }
  ::close(descriptor);
  if (!status.ok()) return status;
  return static_cast<SharedBucket*>(mapped);
}

}  // namespace

Result<std::unique_ptr<WriteLimit>> WriteLimit::start(Comm& comm, const std::string& folder,
                                                      std::uint64_t bytes_per_s) {
  if (comm.n_ranks_on_node() != comm.n_ranks()) {
    return Status(Code::unsupported,
                  "--bandwidth limits the ranks of one node; these span several");
  }
  const std::string path = folder + "/bucket";
  Result<SharedBucket*> bucket = Status(Code::internal, "not mapped");
  if (comm.is_root()) bucket = map_bucket(path, true);
  TAILRACE_TRY(comm.agree(comm.is_root() ? bucket.status() : Status()));
  if (!comm.is_root()) bucket = map_bucket(path, false);
  TAILRACE_TRY(comm.agree(bucket.status()));
  if (comm.is_root()) ::unlink(path.c_str());
  return std::unique_ptr<WriteLimit>(
      std::make_unique<SharedWriteLimit>(*bucket, folder, bytes_per_s));
}

}  // namespace tailrace::bench

// --- what stands before libc's -------------------------------------------------------------------
// Visible from outside although everything else is hidden: that is how shared libraries find them.

#define TAILRACE_BENCH_EXPORT extern "C" __attribute__((visibility("default")))

using tailrace::bench::limited;
using tailrace::bench::next_function;

TAILRACE_BENCH_EXPORT ssize_t write(int descriptor, const void* bytes, size_t n_bytes) {
  static auto* const real = next_function<ssize_t(int, const void*, size_t)>("write");
  return limited(descriptor, [&] { return real(descriptor, bytes, n_bytes); });
}

TAILRACE_BENCH_EXPORT ssize_t pwrite(int descriptor, const void* bytes, size_t n_bytes,
                                     off_t address) {
  static auto* const real = next_function<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return limited(descriptor, [&] { return real(descriptor, bytes, n_bytes, address); });
}

TAILRACE_BENCH_EXPORT ssize_t pwrite64(int descriptor, const void* bytes, size_t n_bytes,
                                       off64_t address) {
  static auto* const real = next_function<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  return limited(descriptor, [&] { return real(descriptor, bytes, n_bytes, address); });
}

TAILRACE_BENCH_EXPORT ssize_t writev(int descriptor, const iovec* pieces, int n_pieces) {
  static auto* const real = next_function<ssize_t(int, const iovec*, int)>("writev");
  return limited(descriptor, [&] { return real(descriptor, pieces, n_pieces); });
}

TAILRACE_BENCH_EXPORT ssize_t pwritev(int descriptor, const iovec* pieces, int n_pieces,
                                      off_t address) {
  static auto* const real = next_function<ssize_t(int, const iovec*, int, off_t)>("pwritev");
  return limited(descriptor, [&] { return real(descriptor, pieces, n_pieces, address); });
}

TAILRACE_BENCH_EXPORT ssize_t pwritev64(int descriptor, const iovec* pieces, int n_pieces,
                                        off64_t address) {
  static auto* const real = next_function<ssize_t(int, const iovec*, int, off64_t)>("pwritev64");
  return limited(descriptor, [&] { return real(descriptor, pieces, n_pieces, address); });
}
