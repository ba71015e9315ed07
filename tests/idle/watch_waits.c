/* See watch_waits.h. The library's counter is odd while the main thread waits. */

#define _GNU_SOURCE
#include "watch_waits.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <unistd.h>

static _Atomic unsigned* n_changes;
static atomic_bool ends;
static atomic_int n_seen;
static pthread_t watcher;

static void* watch(void* unused) {
  while (!ends) {
    if (*n_changes % 2 == 1) ++n_seen;
    usleep(500);
  }
  return unused;
}

void watch_begin(void) {
  n_changes = (_Atomic unsigned*)dlsym(RTLD_DEFAULT, "tailrace_idle_waits_1");
  ends = 0;
  n_seen = 0;
  if (n_changes != NULL) pthread_create(&watcher, NULL, watch, NULL);
}

int watch_end(void) {
  if (n_changes == NULL) return -1;
  const int still = *n_changes % 2 == 1;
  ends = 1;
  pthread_join(watcher, NULL);
  return still ? -2 : n_seen > 0;
}

void arrive_late(void) { usleep(30000); }
