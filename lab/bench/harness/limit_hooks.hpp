// What write_hooks.cpp and read_hooks.cpp share: how a call that stands before libc's finds libc's
// own, and passes the limit of its direction. For these two files alone.

#pragma once

#include <dlfcn.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "write_hooks.hpp"

namespace tailrace::bench {

const ActiveLimit* active_limit_of(Direction direction);
/// CLOCK_MONOTONIC: one clock for all processes of a node.
std::int64_t hook_clock_ns();
/// Book `n_bytes` of a call that began at `start_ns` and, if the descriptor is one that counts,
/// wait until they are served.
void pass_limit(const ActiveLimit& limit, int descriptor, std::uint64_t n_bytes,
                std::int64_t start_ns);

/// Do a transfer by `real`, which returns the bytes moved or -1, and pass the limit for it.
template <class Real>
auto limited(Direction direction, int descriptor, Real&& real) {
  const ActiveLimit* limit = active_limit_of(direction);
  if (limit == nullptr) return real();
  const std::int64_t start_ns = hook_clock_ns();
  const auto done = real();
  const int error = errno;
  if (done > 0) pass_limit(*limit, descriptor, static_cast<std::uint64_t>(done), start_ns);
  errno = error;
  return done;
}

/// The function of this name that would have been called without us.
template <class Function>
Function* next_function(const char* name) {
  void* found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

}  // namespace tailrace::bench

// Visible from outside although everything else is hidden: that is how shared libraries find them.
#define TAILRACE_BENCH_EXPORT extern "C" __attribute__((visibility("default")))
