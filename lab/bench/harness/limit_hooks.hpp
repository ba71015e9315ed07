// Shared parts of write_hooks.cpp and read_hooks.cpp: an interposed call finds libc's function and
// passes the limit of its direction. Internal to these two files.

#pragma once

#include <dlfcn.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>

#include "write_hooks.hpp"

namespace tailrace::bench {

const ActiveLimit* active_limit_of(Direction direction);
/// Time of CLOCK_MONOTONIC, which all processes of a node share.
std::int64_t hook_clock_ns();
/// Book `n_bytes` of a call that started at `start_ns`, and wait until they are served. Ignores
/// descriptors that do not count.
void pass_limit(const ActiveLimit& limit, int descriptor, std::uint64_t n_bytes,
                std::int64_t start_ns);

/// Perform a transfer by `real`, which returns the bytes moved or -1, and pass the limit for it.
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

/// The next function of this name, which the interposed one hides.
template <class Function>
Function* next_function(const char* name) {
  void* found = ::dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function*>(found);
}

}  // namespace tailrace::bench

// Exported although everything else is hidden, so that shared libraries bind to these functions.
#define TAILRACE_BENCH_EXPORT extern "C" __attribute__((visibility("default")))
