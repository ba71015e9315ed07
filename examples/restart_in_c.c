/* The run of restart.cpp in C: killed at any moment, continued on any number of ranks.
 *
 *   mpiexec -n 4 ./restart_in_c run.h5 [sync|async|in_situ] [STEPS]
 */
#include <stdio.h>
#include <stdlib.h>

#include <tailrace/reader.h>
#include <tailrace/tailrace.h>

#ifdef TAILRACE_WITH_MPI
#include <mpi.h>
#define ALL_RANKS TAILRACE_MPI(MPI_COMM_WORLD)
#else
#define ALL_RANKS TAILRACE_SERIAL
#endif

enum { N_ROWS = 96, N_COLUMNS = 160 };
static int rank = 0, n_ranks = 1;

static void check(tailrace_error error) {
  if (error == TAILRACE_OK) return;
  fprintf(stderr, "%s\n", tailrace_thread_error());
#ifdef TAILRACE_WITH_MPI
  MPI_Abort(MPI_COMM_WORLD, 1);
#endif
  exit(1);
}

int main(int argc, char** argv) {
  const char* const path = argc > 1 ? argv[1] : "run.h5";
  const int64_t n_steps = argc > 3 ? atoll(argv[3]) : 40;
  int exists = 0;
#ifdef TAILRACE_WITH_MPI
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
#endif
  const uint64_t shape[2] = {N_ROWS, N_COLUMNS};
  const uint64_t start[2] = {(uint64_t)(N_ROWS * rank / n_ranks), 0};
  const uint64_t count[2] = {(uint64_t)(N_ROWS * (rank + 1) / n_ranks) - start[0], N_COLUMNS};
  const size_t n = count[0] * N_COLUMNS;
  double* const u = malloc((n + 1) * sizeof *u);
  if (u == NULL) return 1;
  for (size_t i = 0; i < n; ++i) u[i] = (double)(start[0] * N_COLUMNS + i + 1) / 20000;

  int64_t step = 0;
  check(tailrace_file_recover(path, ALL_RANKS, &exists)); /* Alike on all ranks. */
  if (exists) {
    tailrace_reader* reader = NULL;
    check(tailrace_reader_open(path, ALL_RANKS, NULL, &reader));
    step = tailrace_reader_last_step(reader) + 1;
    if (step > 0) {
      check(tailrace_reader_read_step(reader, "/u", (uint64_t)step - 1, start, count, u,
                                      n * sizeof *u));
    }
    check(tailrace_reader_close(reader));
  }
  if (rank == 0) printf("from step %d on %d ranks\n", (int)step, n_ranks);
  fflush(stdout);

  char options[32];
  snprintf(options, sizeof options, "mode=%s", argc > 2 ? argv[2] : "sync");
  tailrace_file* file = NULL;
  tailrace_field field;
  check(exists ? tailrace_file_open(path, ALL_RANKS, options, &file)
               : tailrace_file_create(path, ALL_RANKS, options, &file));
  const char* const names[] = {"y", "x"};
  check(tailrace_field_define_named(file, "/u", TAILRACE_F64, 2, shape, names, NULL, "over-time=on",
                                    &field));
  for (; step < n_steps; ++step) {
    for (size_t i = 0; i < n; ++i) u[i] = 2.75 * u[i] * (1 - u[i]); /* The simulation. */
    check(tailrace_field_put(file, field, start, count, u));
    check(tailrace_time_set(file, "/time", 0.25 * (double)step, "s"));
    check(tailrace_file_end_step(file, NULL));
  }
  check(tailrace_file_close(file));
  free(u);
#ifdef TAILRACE_WITH_MPI
  MPI_Finalize();
#endif
  return 0;
}
