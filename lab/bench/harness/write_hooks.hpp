// Interposed functions for every write and read of the process: write_hooks.cpp and read_hooks.cpp
// define them, and they take precedence over libc's.
//
// A write returns when a storage of the set bandwidth would have accepted its bytes. That storage
// serves its writers in turn and buffers nothing; the writing thread sleeps. A read returns when
// such a storage would have delivered the bytes, even if they came from the page cache. Only
// regular files below one folder count. There are two users: tailrace-bench, whose ranks share a
// bucket of writes (write_limit.cpp), and libwritelimit.so, which can be preloaded into any program
// (write_limit_preload.cpp).
//
// Limits of the method: io_uring, aio, mapped files, and libc's internal stdio calls are not seen.

#pragma once

#include <atomic>
#include <cstdint>
#include <string>

namespace tailrace::bench {

/// State of the storage, initially all zero. In shared memory if several processes share it.
struct TransferBucket {
  std::atomic<std::int64_t> free_at_ns;  ///< Time at which all booked transfers are served.
  std::atomic<std::uint64_t> n_bytes;
};
static_assert(std::atomic<std::int64_t>::is_always_lock_free);

struct ActiveLimit {
  TransferBucket* bucket = nullptr;
  std::string folder;                   ///< Absolute, without links; ends in '/'.
  std::atomic<double> bytes_per_s = 0;  ///< 0: count bytes only.
};

enum class Direction : std::uint8_t { write, read };

/// Apply `limit`, which must stay alive, to later writes (or reads) of this process; nullptr: no
/// limit. Thread-safe.
void set_active_limit(Direction direction, const ActiveLimit* limit);

}  // namespace tailrace::bench
