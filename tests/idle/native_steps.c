/* Program on tailrace.h in mode=in_situ that marks no idle time, for python/test_idle.py. Rank 1 is
 * slow, and rank 0 waits for it in MPI. It prints how long ranks encoded in idle time.
 *
 *   native_steps FILE
 */

#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <tailrace/tailrace.h>

#include "watch_waits.h"

enum { ROWS = 512, ROW = 1024, STEPS = 4 };

static void check(tailrace_error error) {
  if (error == TAILRACE_OK) return;
  fprintf(stderr, "%s\n", tailrace_thread_error());
  MPI_Abort(MPI_COMM_WORLD, 1);
}

int main(int argc, char** argv) {
  int rank = 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const uint64_t shape[2] = {ROWS, ROW};
  const uint64_t start[2] = {ROWS / 2 * (uint64_t)rank, 0};
  const uint64_t count[2] = {ROWS / 2, ROW};
  double* const values = malloc(sizeof(double) * ROWS / 2 * ROW);
  if (argc != 2 || values == NULL) return 1;
  tailrace_file* file = NULL;
  tailrace_field field;
  check(tailrace_file_create(argv[1], TAILRACE_MPI(MPI_COMM_WORLD),
                             "mode=in_situ,codec=deflate,level=6,chunk=16x1024", &file));
  check(tailrace_field_define(file, "/u", TAILRACE_F64, 2, shape, "over-time=on", &field));
  double idle_s = 0;
  for (int step = 0; step <= STEPS; ++step) {
    const tailrace_step_report* report = NULL;
    if (step < STEPS) {
      for (int i = 0; i < ROWS / 2 * ROW; ++i) values[i] = (rank + step + i) % 1000 * 0.5;
      check(tailrace_field_put(file, field, start, count, values));
      check(tailrace_file_end_step(file, &report));
    } else {
      check(tailrace_file_wait(file, &report));
    }
    if (report != NULL) idle_s += report->idle_encode_s;
    for (int i = 0; i < 5 && rank == 1; ++i) arrive_late();
    MPI_Barrier(MPI_COMM_WORLD);
  }
  check(tailrace_file_close(file));
  free(values);
  if (rank == 0) printf("idle_encode_s %g\n", idle_s);
  MPI_Finalize();
  return 0;
}
