/* Heat spreads in an insulated plate, and every 100 time steps the program writes the temperature.
 *
 * The plate is divided into bands of rows, one per rank. Each output is a separate group, such as
 * /step_0100/temperature, with values within 0.001 K of the computed ones. The same source runs on
 * many ranks, or, compiled without TAILRACE_WITH_MPI, as one process.
 *
 *   mpiexec -n 4 ./write_field heat.h5        then, for instance: h5dump -H heat.h5
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tailrace/tailrace.h>

#ifdef TAILRACE_WITH_MPI
#include <mpi.h>
#define ALL_RANKS TAILRACE_MPI(MPI_COMM_WORLD)
#else
#define ALL_RANKS TAILRACE_SERIAL
#endif

enum { N_ROWS = 250, N_COLUMNS = 320, N_STEPS = 400, STEPS_PER_OUTPUT = 100 };

static int rank = 0, n_ranks = 1;

/* Everything below stops at the first failure: the error is the same on every rank. */
static void check(tailrace_error error) {
  if (error == TAILRACE_OK) return;
  fprintf(stderr, "%s: %s\n", tailrace_error_name(error), tailrace_thread_error());
  exit(1);
}

static double sum_over_ranks(double value) {
#ifdef TAILRACE_WITH_MPI
  MPI_Allreduce(MPI_IN_PLACE, &value, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#endif
  return value;
}

/* Fill the two halo rows, 0 and n_rows + 1: from the neighbours, or, at the plate's insulated edge,
 * with the adjacent row, so that no heat flows out. */
static void fill_halo(double* t, int n_rows) {
  double *above = t, *first = t + N_COLUMNS;
  double *last = t + (size_t)n_rows * N_COLUMNS, *below = last + N_COLUMNS;
  for (int j = 0; j < N_COLUMNS; ++j) above[j] = first[j], below[j] = last[j];
#ifdef TAILRACE_WITH_MPI
  const int up = rank > 0 ? rank - 1 : MPI_PROC_NULL;
  const int down = rank + 1 < n_ranks ? rank + 1 : MPI_PROC_NULL;
  MPI_Sendrecv(first, N_COLUMNS, MPI_DOUBLE, up, 0, below, N_COLUMNS, MPI_DOUBLE, down, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(last, N_COLUMNS, MPI_DOUBLE, down, 1, above, N_COLUMNS, MPI_DOUBLE, up, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#endif
}

/* One explicit step of dT/dt = laplace(T); returns this rank's heat after it. */
static double diffuse(double* t, double* next, int n_rows) {
  const double dt = 0.2; /* stable up to 0.25 for cells of size 1 */
  double heat = 0;
  fill_halo(t, n_rows);
  for (int i = 1; i <= n_rows; ++i) {
    for (int j = 0; j < N_COLUMNS; ++j) {
      const double* here = t + (size_t)i * N_COLUMNS + j;
      const double left = here[j > 0 ? -1 : 0], right = here[j + 1 < N_COLUMNS ? 1 : 0];
      const double flow = left + right + here[-N_COLUMNS] + here[N_COLUMNS] - 4 * *here;
      next[(size_t)i * N_COLUMNS + j] = *here + dt * flow;
      heat += next[(size_t)i * N_COLUMNS + j];
    }
  }
  return heat;
}

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == '-') {
    printf("usage: %s [FILE]\nWrites FILE, heat.h5 if none is named.\n", argv[0]);
    return strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
#ifdef TAILRACE_WITH_MPI
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
#endif
  const int first_row = N_ROWS * rank / n_ranks;
  const int n_rows = N_ROWS * (rank + 1) / n_ranks - first_row;
  double* t = calloc((size_t)(n_rows + 2) * N_COLUMNS, sizeof *t);
  double* next = calloc((size_t)(n_rows + 2) * N_COLUMNS, sizeof *next);
  double heat = 0;
  for (int i = 1; i <= n_rows; ++i) {
    for (int j = 0; j < N_COLUMNS; ++j) { /* a hot disc and a cold bar on a plate of 300 K */
      const double y = first_row + i - 80, x = j - 100;
      const double hot = x * x + y * y < 40 * 40 ? 80 : 0, cold = j > 200 && j < 230 ? -50 : 0;
      heat += t[(size_t)i * N_COLUMNS + j] = 300 + hot + cold;
    }
  }
  const double heat_at_start = sum_over_ranks(heat);

  tailrace_file* file;
  check(tailrace_file_create(argc > 1 ? argv[1] : "heat.h5", ALL_RANKS,
                             "codec=portable,bound=abs=1e-3,replace=on", &file));
  check(tailrace_attribute_set_text(file, "/", "title", "heat in an insulated plate"));

  const uint64_t shape[2] = {N_ROWS, N_COLUMNS};
  const uint64_t start[2] = {(uint64_t)first_row, 0}, count[2] = {(uint64_t)n_rows, N_COLUMNS};
  for (int64_t step = 0; step <= N_STEPS; ++step) {
    if (step % STEPS_PER_OUTPUT == 0) {
      char path[64];
      snprintf(path, sizeof path, "/step_%04d/temperature", (int)step);
      tailrace_field temperature;
      const tailrace_step_report* report;
      check(tailrace_field_define(file, path, TAILRACE_F64, 2, shape, NULL, &temperature));
      check(tailrace_attribute_set_text(file, path, "units", "K"));
      check(tailrace_attribute_set_i64(file, path, "time_step", 1, &step));
      check(tailrace_field_put(file, temperature, start, count, t + N_COLUMNS));
      check(tailrace_file_end_step(file, &report)); /* from here on t may change again */
      if (rank == 0) {
        printf("%s: %.1f times smaller, largest error allowed %g K\n", path, report->ratio,
               report->fields[0]->absolute_bound);
      }
    }
    heat = diffuse(t, next, n_rows);
    double* swap = t;
    t = next, next = swap;
  }
  check(tailrace_file_close(file));

  const double drift = fabs(sum_over_ranks(heat) / heat_at_start - 1);
  if (rank == 0) printf("heat changed by %.1e of its amount\n", drift);
  free(t);
  free(next);
#ifdef TAILRACE_WITH_MPI
  MPI_Finalize();
#endif
  return drift < 1e-12 ? 0 : 1;
}
