// The bucket, and the interposed functions for writing.
//
// Invariant 1: in any interval, the accepted bytes do not exceed bandwidth times its length, except
// for one slice per rank and 0.2 ms.
//
// Invariant 2: while a rank has bytes to move, late wake-ups lose no bandwidth. The next slice of
// the same write is booked from the end of the one before, not from the current time. Between two
// writes of a rank the storage is idle, like a real one.

#include "write_hooks.hpp"

#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>

#include "limit_hooks.hpp"

namespace tailrace::bench {
namespace {

/// Granularity at which concurrent writers take turns.
constexpr std::uint64_t kSliceBytes = 1U << 20;
/// A sleep takes at least about 60 us, so a write waits only if more than this is booked before its
/// end. A series of many small writes is thus limited as exactly as a large one.
constexpr std::int64_t kQueueNs = 200'000;

std::array<std::atomic<const ActiveLimit*>, 2> active_limits{};

void sleep_until(std::int64_t end_ns) {
  const timespec end{end_ns / 1'000'000'000, end_ns % 1'000'000'000};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &end, nullptr) == EINTR) {
  }
}

/// Book `n_bytes` that were submitted at `start_ns`, and wait until they are served.
void pass_bucket(const ActiveLimit& limit, std::uint64_t n_bytes, std::int64_t start_ns) {
  limit.bucket->n_bytes += n_bytes;
  const double bytes_per_s = limit.bytes_per_s;
  if (bytes_per_s <= 0) return;
  std::int64_t ready_ns = start_ns;
  while (n_bytes > 0) {
    const std::uint64_t slice = std::min(n_bytes, kSliceBytes);
    const auto slice_ns = static_cast<std::int64_t>(1e9 * static_cast<double>(slice) / bytes_per_s);
    std::int64_t free_at = limit.bucket->free_at_ns.load();
    std::int64_t end_ns = 0;
    do {
      end_ns = std::max(free_at, ready_ns) + slice_ns;
    } while (!limit.bucket->free_at_ns.compare_exchange_weak(free_at, end_ns));
    if (end_ns - hook_clock_ns() > kQueueNs) sleep_until(end_ns);
    ready_ns = end_ns;
    n_bytes -= slice;
  }
}

/// True if the descriptor is a regular file below the folder of the run.
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

}  // namespace

std::int64_t hook_clock_ns() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

const ActiveLimit* active_limit_of(Direction direction) {
  return active_limits[static_cast<std::size_t>(direction)].load();
}

void set_active_limit(Direction direction, const ActiveLimit* limit) {
  active_limits[static_cast<std::size_t>(direction)] = limit;
}

void pass_limit(const ActiveLimit& limit, int descriptor, std::uint64_t n_bytes,
                std::int64_t start_ns) {
  if (is_counted(limit, descriptor)) pass_bucket(limit, n_bytes, start_ns);
}

}  // namespace tailrace::bench

// --- interposed functions ------------------------------------------------------------------------

using tailrace::bench::Direction;
using tailrace::bench::limited;
using tailrace::bench::next_function;

TAILRACE_BENCH_EXPORT ssize_t write(int descriptor, const void* bytes, size_t n_bytes) {
  static auto* const real = next_function<ssize_t(int, const void*, size_t)>("write");
  return limited(Direction::write, descriptor, [&] { return real(descriptor, bytes, n_bytes); });
}

TAILRACE_BENCH_EXPORT ssize_t pwrite(int descriptor, const void* bytes, size_t n_bytes,
                                     off_t address) {
  static auto* const real = next_function<ssize_t(int, const void*, size_t, off_t)>("pwrite");
  return limited(Direction::write, descriptor,
                 [&] { return real(descriptor, bytes, n_bytes, address); });
}

TAILRACE_BENCH_EXPORT ssize_t pwrite64(int descriptor, const void* bytes, size_t n_bytes,
                                       off64_t address) {
  static auto* const real = next_function<ssize_t(int, const void*, size_t, off64_t)>("pwrite64");
  return limited(Direction::write, descriptor,
                 [&] { return real(descriptor, bytes, n_bytes, address); });
}

TAILRACE_BENCH_EXPORT ssize_t writev(int descriptor, const iovec* pieces, int n_pieces) {
  static auto* const real = next_function<ssize_t(int, const iovec*, int)>("writev");
  return limited(Direction::write, descriptor, [&] { return real(descriptor, pieces, n_pieces); });
}

TAILRACE_BENCH_EXPORT ssize_t pwritev(int descriptor, const iovec* pieces, int n_pieces,
                                      off_t address) {
  static auto* const real = next_function<ssize_t(int, const iovec*, int, off_t)>("pwritev");
  return limited(Direction::write, descriptor,
                 [&] { return real(descriptor, pieces, n_pieces, address); });
}

TAILRACE_BENCH_EXPORT ssize_t pwritev64(int descriptor, const iovec* pieces, int n_pieces,
                                        off64_t address) {
  static auto* const real = next_function<ssize_t(int, const iovec*, int, off64_t)>("pwritev64");
  return limited(Direction::write, descriptor,
                 [&] { return real(descriptor, pieces, n_pieces, address); });
}
