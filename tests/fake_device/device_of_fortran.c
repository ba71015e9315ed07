/* The fake device for device_steps_in_fortran.f90. */

#define _DEFAULT_SOURCE /* For mmap's MAP_ANONYMOUS under -std=c99. */

#include "fake_device.h"

static FakeDevice device;

void* fortran_device_make(size_t n_bytes) {
  device_make(&device, n_bytes);
  return device.memory;
}
void fortran_device_fill(size_t offset, const void* values, size_t n_bytes) {
  device_fill(&device, offset, values, n_bytes);
}
void fortran_device_fail_next(void) { device.fails_at = device.n_copies + 1; }

/* `user` is 7 in memory of the program. */
int fortran_device_copy(void* user, void* to, const void* from, size_t n_bytes) {
  return *(const int*)user == 7 ? device_copy(&device, to, from, n_bytes) : 710;
}
