// IdleWaits: how libtailrace_idle.so tells the engine that the program waits in MPI.
//
// The program loads that library on request (frontends/idle). Each blocking MPI call of the main
// thread then changes a counter, and a thread of the encode lane reads it. Neither side waits for
// the other, so the marks cannot hang a program or change its results.

#pragma once

#include <atomic>
#include <cstdint>

namespace tailrace {

/// Memory of libtailrace_idle.so. All members are lock-free.
struct IdleWaits {
  /// Incremented when the main thread enters a blocking MPI call, and when it returns: odd while it
  /// waits. Only the main thread writes it.
  std::atomic<std::uint32_t> n_changes{0};
  /// Number of threads of Tailrace that have work for the core of a waiting main thread.
  std::atomic<std::uint32_t> n_workers{0};
};

/// Name of the library's variable. A change of the struct needs another name.
#define TAILRACE_IDLE_WAITS tailrace_idle_waits_1

/// Find the loaded library's memory; null if the program has not loaded it. Not collective.
/// Thread-safe. Cost: a symbol lookup.
IdleWaits* find_idle_waits();

}  // namespace tailrace
