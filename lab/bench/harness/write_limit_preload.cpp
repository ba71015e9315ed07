// libwritelimit.so: the limits of write_hooks.hpp for any program, by preloading.
//
//   LD_PRELOAD=libwritelimit.so TAILRACE_WRITE_LIMIT=25000000 TAILRACE_WRITE_LIMIT_FOLDER=/scratch
//   LD_PRELOAD=libwritelimit.so TAILRACE_READ_LIMIT=25000000 TAILRACE_READ_LIMIT_FOLDER=/scratch
//
// Limits are in bytes per second of each process, with one bucket per direction; 0 only counts
// bytes. They apply to regular files below the folder (an absolute path without links). A direction
// is limited only if both its variables are set. The applications of examples/ start themselves
// with this library for --write-limit and --read-limit.

#include <cstdlib>
#include <string>

#include "limit_hooks.hpp"

namespace tailrace::bench {
namespace {

/// Start a direction's limit. It is never freed, because threads may write until the process ends.
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

/// Runs before main().
__attribute__((constructor)) void start_from_environment() {
  start_direction(Direction::write, "TAILRACE_WRITE_LIMIT");
  start_direction(Direction::read, "TAILRACE_READ_LIMIT");
}

}  // namespace
}  // namespace tailrace::bench

/// Bytes that this process has moved and that count; direction 0: written, 1: read. Programs find
/// this function by name (dlsym), and work without it if the library is not loaded.
TAILRACE_BENCH_EXPORT unsigned long long tailrace_limited_bytes(int direction) {
  using tailrace::bench::Direction;
  const auto* limit =
      tailrace::bench::active_limit_of(direction == 1 ? Direction::read : Direction::write);
  return limit == nullptr ? 0 : limit->bucket->n_bytes.load();
}
