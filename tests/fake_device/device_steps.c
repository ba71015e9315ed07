/* Steps whose values lie on a device, for tests/python/test_device.py.
 *
 *   device_steps FILE OPTIONS host|device|fails|without
 *
 * Writes four steps of three fields over time, from the host or from a fake device. `fails`: a copy
 * of the last rank fails in step 1. `without`: no function is set. Rank 0 prints the number of
 * failed calls, the largest copy, and the first call's text, which all ranks must have alike.
 */

#define _DEFAULT_SOURCE /* For mmap's MAP_ANONYMOUS under -std=c99. */

#include <mpi.h>
#include <stdio.h>
#include <tailrace/tailrace.h>

#include "fake_device.h"

enum { ROWS = 96, COLUMNS = 160, STEPS = 4 };

static int rank, n_ranks;
static FakeDevice device;
static int n_failed;
static char text[1024];
static int from_device;
static tailrace_file* file;

static double value_of(int step, uint64_t i) { return step * 1000.0 + (double)(i % 997) * 0.25; }

/* Note a failure, and check that all ranks have it alike. */
static void meet(tailrace_error error) {
  char mine[1024] = "";
  char first[1024];
  if (error != TAILRACE_OK) snprintf(mine, sizeof mine, "%s", tailrace_thread_error());
  memcpy(first, mine, sizeof first);
  MPI_Bcast(first, sizeof first, MPI_CHAR, 0, MPI_COMM_WORLD);
  if (strcmp(first, mine) != 0) {
    fprintf(stderr, "rank %d: \"%s\", rank 0: \"%s\"\n", rank, mine, first);
    MPI_Abort(MPI_COMM_WORLD, 1);
  }
  if (error == TAILRACE_OK) return;
  if (++n_failed == 1) memcpy(text, mine, sizeof text);
}

static void put(tailrace_field field, const uint64_t* start, const uint64_t* count,
                const double* values, size_t offset, size_t n_values) {
  if (!from_device) {
    (void)tailrace_field_put_copy(file, field, start, count, values);
    return;
  }
  device_fill(&device, offset * sizeof *values, values, n_values * sizeof *values);
  (void)tailrace_field_put_device(file, field, start, count,
                                  device.memory + offset * sizeof *values);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  if (argc != 4) return 1;
  from_device = strcmp(argv[3], "host") != 0;
  const int fails = strcmp(argv[3], "fails") == 0;
  const size_t n = (size_t)ROWS * COLUMNS;
  double* const values = malloc(n * sizeof *values);
  device_make(&device, 2 * (n + 1) * sizeof *values);

  tailrace_field rows, columns, scalar;
  meet(tailrace_file_create(argv[1], TAILRACE_MPI(MPI_COMM_WORLD), argv[2], &file));
  if (n_failed > 0) {
    fprintf(stderr, "%s\n", text);
    return 1;
  }
  const uint64_t shape[2] = {ROWS, COLUMNS};
  meet(tailrace_field_define(file, "/rows", TAILRACE_F64, 2, shape, "over-time=on", &rows));
  meet(tailrace_field_define(file, "/columns", TAILRACE_F64, 2, shape,
                             "over-time=on,codec=portable,bound=rel=1e-6", &columns));
  meet(tailrace_field_define(file, "/scalar", TAILRACE_F64, 0, NULL, "over-time=on", &scalar));
  if (strcmp(argv[3], "without") != 0) {
    (void)tailrace_file_set_copy_from_device(file, device_copy, &device);
  }
  for (int step = 0; step < STEPS; ++step) {
    device.fails_at = fails && step == 1 && rank == n_ranks - 1 ? device.n_copies + 2 : 0;
    /* Blocks of rows. */
    const uint64_t first = (uint64_t)(ROWS * rank / n_ranks);
    const uint64_t start[2] = {first, 0};
    const uint64_t count[2] = {(uint64_t)(ROWS * (rank + 1) / n_ranks) - first, COLUMNS};
    const size_t n_rows = count[0] * COLUMNS;
    for (size_t i = 0; i < n_rows; ++i) values[i] = value_of(step, first * COLUMNS + i);
    put(rows, start, count, values, 0, n_rows);
    /* Blocks of columns, in two boxes. */
    const uint64_t from = (uint64_t)(COLUMNS * rank / n_ranks);
    const uint64_t n_columns = (uint64_t)(COLUMNS * (rank + 1) / n_ranks) - from;
    for (uint64_t half = 0; half < 2; ++half) {
      const uint64_t start_of[2] = {half * ROWS / 2, from};
      const uint64_t count_of[2] = {ROWS / 2, n_columns};
      const size_t n_half = ROWS / 2 * n_columns;
      for (size_t i = 0; i < n_half; ++i) {
        const uint64_t row = half * ROWS / 2 + i / n_columns;
        values[i] = value_of(step, row * COLUMNS + from + i % n_columns);
      }
      put(columns, start_of, count_of, values, n + half * n_half, n_half);
    }
    const double number = step + 0.5;
    if (rank == 0) put(scalar, NULL, NULL, &number, 2 * n, 1);
    meet(tailrace_file_end_step(file, NULL));
  }
  meet(tailrace_file_close(file));
  device_free(&device);
  free(values);
  if (rank == 0) printf("%d failed\n%zu bytes\n%s\n", n_failed, device.largest_bytes, text);
  MPI_Finalize();
  return 0;
}
