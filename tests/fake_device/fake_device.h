/* A device without a GPU: memory that the host cannot read. Only the copying functions here open
 * it, for the time of one copy, so any other access ends the process with SIGSEGV.
 */

#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct {
  char* memory;
  size_t n_bytes;
  int n_copies;
  size_t largest_bytes;
  int fails_at; /* Number of the copy that fails; 0: none. */
} FakeDevice;

static void device_make(FakeDevice* device, size_t n_bytes) {
  memset(device, 0, sizeof *device);
  device->n_bytes = (n_bytes + 4095) / 4096 * 4096;
  device->memory =
      (char*)mmap(NULL, device->n_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (device->memory == (char*)MAP_FAILED) abort();
}

static void device_free(FakeDevice* device) { munmap(device->memory, device->n_bytes); }

/* Copy from the host to the device. */
static void device_fill(FakeDevice* device, size_t offset, const void* values, size_t n_bytes) {
  if (mprotect(device->memory, device->n_bytes, PROT_WRITE) != 0) abort();
  memcpy(device->memory + offset, values, n_bytes);
  if (mprotect(device->memory, device->n_bytes, PROT_NONE) != 0) abort();
}

/* The function for Tailrace. */
static int device_copy(void* user, void* to, const void* from, size_t n_bytes) {
  FakeDevice* const device = (FakeDevice*)user;
  const size_t offset = (size_t)((const char*)from - device->memory);
  if (++device->n_copies == device->fails_at) return 700;
  if (offset > device->n_bytes || n_bytes > device->n_bytes - offset) return 701;
  if (n_bytes > device->largest_bytes) device->largest_bytes = n_bytes;
  if (mprotect(device->memory, device->n_bytes, PROT_READ) != 0) return 702;
  memcpy(to, from, n_bytes);
  if (mprotect(device->memory, device->n_bytes, PROT_NONE) != 0) return 703;
  return 0;
}

#endif
