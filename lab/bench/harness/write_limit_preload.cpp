// libwritelimit.so: the limits of write_hooks.hpp for a program that knows nothing of them.
//
//   LD_PRELOAD=libwritelimit.so TAILRACE_WRITE_LIMIT=25000000 TAILRACE_WRITE_LIMIT_FOLDER=/scratch
//   LD_PRELOAD=libwritelimit.so TAILRACE_READ_LIMIT=25000000 TAILRACE_READ_LIMIT_FOLDER=/scratch
//
// Bytes per second of each process, in a bucket of its own for each direction, for regular files
// below the folder (an absolute path without links); 0: they are counted only. A direction without
// both of its variables is left alone. The applications of examples/ start themselves with it for
// --write-limit and --read-limit.

#include <cstdlib>
#include <string>

#include "limit_hooks.hpp"

namespace tailrace::bench {
namespace {

/// What it makes is never freed: threads may write until the process is gone.
void start_direction(Direction direction, const std::string& variable) {
  const char* limit = std::getenv(variable.c_str());
  const char* folder = std::getenv((variable + "_FOLDER").c_str());
  if (limit == nullptr || folder == nullptr) return;
  auto* const active = new ActiveLimit;
  active->bucket = new TransferBucket{};
  active->folder = std::string(folder) + "/";
  active->bytes_per_s = std::strtod(limit, nullptr);
  set_active_limit(direction, active);
}

/// Runs before main.
__attribute__((constructor)) void start_from_environment() {
  start_direction(Direction::write, "TAILRACE_WRITE_LIMIT");
  start_direction(Direction::read, "TAILRACE_READ_LIMIT");
}

}  // namespace
}  // namespace tailrace::bench

/// Bytes that this process has moved so far, of those that count; direction 0: written, 1: read.
/// Programs look for it by name (dlsym) and do without where this library is not loaded.
TAILRACE_BENCH_EXPORT unsigned long long tailrace_limited_bytes(int direction) {
  using tailrace::bench::Direction;
  const auto* limit =
      tailrace::bench::active_limit_of(direction == 1 ? Direction::read : Direction::write);
  return limit == nullptr ? 0 : limit->bucket->n_bytes.load();
}
