// Interposed functions for reading: see write_hooks.hpp.
//
// Includes the __NAME_chk variants, which programs call that were compiled with _FORTIFY_SOURCE,
// such as Debian's libraries (MPI-IO, HDF5, PnetCDF).

#include <sys/uio.h>
#include <unistd.h>

#include "limit_hooks.hpp"

using tailrace::bench::Direction;
using tailrace::bench::limited;
using tailrace::bench::next_function;

TAILRACE_BENCH_EXPORT ssize_t read(int descriptor, void* bytes, size_t n_bytes) {
  static auto* const real = next_function<ssize_t(int, void*, size_t)>("read");
  return limited(Direction::read, descriptor, [&] { return real(descriptor, bytes, n_bytes); });
}

TAILRACE_BENCH_EXPORT ssize_t pread(int descriptor, void* bytes, size_t n_bytes, off_t address) {
  static auto* const real = next_function<ssize_t(int, void*, size_t, off_t)>("pread");
  return limited(Direction::read, descriptor,
                 [&] { return real(descriptor, bytes, n_bytes, address); });
}

TAILRACE_BENCH_EXPORT ssize_t pread64(int descriptor, void* bytes, size_t n_bytes,
                                      off64_t address) {
  static auto* const real = next_function<ssize_t(int, void*, size_t, off64_t)>("pread64");
  return limited(Direction::read, descriptor,
                 [&] { return real(descriptor, bytes, n_bytes, address); });
}

TAILRACE_BENCH_EXPORT ssize_t readv(int descriptor, const iovec* pieces, int n_pieces) {
  static auto* const real = next_function<ssize_t(int, const iovec*, int)>("readv");
  return limited(Direction::read, descriptor, [&] { return real(descriptor, pieces, n_pieces); });
}

TAILRACE_BENCH_EXPORT ssize_t preadv(int descriptor, const iovec* pieces, int n_pieces,
                                     off_t address) {
  static auto* const real = next_function<ssize_t(int, const iovec*, int, off_t)>("preadv");
  return limited(Direction::read, descriptor,
                 [&] { return real(descriptor, pieces, n_pieces, address); });
}

TAILRACE_BENCH_EXPORT ssize_t preadv64(int descriptor, const iovec* pieces, int n_pieces,
                                       off64_t address) {
  static auto* const real = next_function<ssize_t(int, const iovec*, int, off64_t)>("preadv64");
  return limited(Direction::read, descriptor,
                 [&] { return real(descriptor, pieces, n_pieces, address); });
}

// --- variants for fortified programs; the last argument is the size known to the compiler.
// The C library prescribes these names.
// NOLINTBEGIN(bugprone-reserved-identifier,readability-identifier-naming)

TAILRACE_BENCH_EXPORT ssize_t __read_chk(int descriptor, void* bytes, size_t n_bytes, size_t room) {
  static auto* const real = next_function<ssize_t(int, void*, size_t, size_t)>("__read_chk");
  return limited(Direction::read, descriptor,
                 [&] { return real(descriptor, bytes, n_bytes, room); });
}

TAILRACE_BENCH_EXPORT ssize_t __pread_chk(int descriptor, void* bytes, size_t n_bytes,
                                          off_t address, size_t room) {
  static auto* const real =
      next_function<ssize_t(int, void*, size_t, off_t, size_t)>("__pread_chk");
  return limited(Direction::read, descriptor,
                 [&] { return real(descriptor, bytes, n_bytes, address, room); });
}

TAILRACE_BENCH_EXPORT ssize_t __pread64_chk(int descriptor, void* bytes, size_t n_bytes,
                                            off64_t address, size_t room) {
  static auto* const real =
      next_function<ssize_t(int, void*, size_t, off64_t, size_t)>("__pread64_chk");
  return limited(Direction::read, descriptor,
                 [&] { return real(descriptor, bytes, n_bytes, address, room); });
}

// NOLINTEND(bugprone-reserved-identifier,readability-identifier-naming)
