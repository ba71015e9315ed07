// Operator new that fails once, for python/test_hdf5_serial_bounds.py. Preloaded into a C program,
// it counts our library's allocations, and allocation number FAILING_NEW fails.

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <new>

namespace {

std::atomic<long> n_asked{0};

long failing() {
  static const char* const which = std::getenv("FAILING_NEW");
  return which != nullptr ? std::strtol(which, nullptr, 10) : 0;
}

/// True after the constructors of other libraries, whose allocations do not count.
bool begun = false;
__attribute__((constructor)) void begin() { begun = true; }

__attribute__((destructor)) void report() {
  std::fprintf(stderr, "asked for memory: %ld\n", n_asked.load());
}

}  // namespace

void* operator new(std::size_t n_bytes) {
  if (begun && ++n_asked == failing()) throw std::bad_alloc();
  void* const room = std::malloc(n_bytes);
  if (room == nullptr) throw std::bad_alloc();
  return room;
}
void operator delete(void* room) noexcept { std::free(room); }
void operator delete(void* room, std::size_t) noexcept { std::free(room); }
