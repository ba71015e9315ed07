// What every write and every read of the process passes: the functions of write_hooks.cpp and
// read_hooks.cpp stand before libc's.
//
// A write returns when a storage of the bandwidth set, which serves its writers in turn and buffers
// nothing, would have taken its bytes; it is the writing thread that sleeps. A read returns when
// such a storage would have delivered them, whether or not they came from the page cache. Only
// regular files below one folder count. Two users: tailrace-bench, whose ranks share a bucket of
// writes (write_limit.cpp), and libwritelimit.so, which any program can be started with
// (preload/write_limit_preload.cpp).
// Limits of the method: io_uring, aio, mapped files, and what libc does for stdio are not seen.

#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tailrace::bench {

/// The storage's state; all zero to begin with. In shared memory where several processes share it.
struct TransferBucket {
  std::atomic<std::int64_t> free_at_ns;  ///< When the storage has served all that is booked.
  std::atomic<std::uint64_t> n_bytes;
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

struct ActiveLimit {
  TransferBucket* bucket = nullptr;
  std::string folder;                   ///< Absolute, without links; ends in '/'.
  std::atomic<double> bytes_per_s = 0;  ///< 0: bytes are counted only.
};

enum class Direction : std::uint8_t { write, read };

/// Writes (or reads) of this process pass `limit` from now on, which must stay alive; nullptr:
/// none. Thread-safe.
void set_active_limit(Direction direction, const ActiveLimit* limit);

}  // namespace tailrace::bench
