// An operator new that fails once, for python/test_hdf5_serial_bounds.py: preloaded into a program
// in C it counts what our library allocates, and FAILING_NEW=n is the one that has no memory.

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

/// It is loaded first and begins last: what others allocate while they are loaded does not count.
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
