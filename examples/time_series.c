/* Waves in a canal, written as fields that grow over time: height(time, x) and discharge(time,
 * x).
 *
 * A field with over-time=on is defined once and put again in every step; in the file it has an
 * unlimited first dimension, the time. Dimensions have names and coordinates, so that xarray and
 * ncdump show height(time, x) with metres and seconds. Half way through, the program closes the
 * file and opens it again, like a run that continues from a restart.
 *
 *   mpiexec -n 4 ./time_series canal.h5       then: ncdump -c canal.h5
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

enum { N_CELLS = 1000, N_OUTPUTS = 40, STEPS_PER_OUTPUT = 25 };
static const double gravity = 9.81, dx = 10.0, dt = 0.5; /* m/s2, m, s */

static int rank = 0, n_ranks = 1;

typedef struct {
  double height, discharge;
} Cell; /* m, m2/s */

static void check(tailrace_error error) {
  if (error == TAILRACE_OK) return;
  fprintf(stderr, "%s: %s\n", tailrace_error_name(error), tailrace_thread_error());
  exit(1);
}

/* The canal is a ring: cells 0 and n + 1 are copies of the neighbours' last and first. */
static void fill_halo(Cell* cells, int n) {
#ifdef TAILRACE_WITH_MPI
  const int left = (rank + n_ranks - 1) % n_ranks, right = (rank + 1) % n_ranks;
  MPI_Sendrecv(&cells[1], 2, MPI_DOUBLE, left, 0, &cells[n + 1], 2, MPI_DOUBLE, right, 0,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Sendrecv(&cells[n], 2, MPI_DOUBLE, right, 1, &cells[0], 2, MPI_DOUBLE, left, 1,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
#else
  cells[0] = cells[n], cells[n + 1] = cells[1];
#endif
}

/* Flow across the border of two cells, by Rusanov's flux for the shallow-water equations. */
static Cell flux(Cell a, Cell b) {
  const double ua = a.discharge / a.height, ub = b.discharge / b.height;
  const double ca = sqrt(gravity * a.height), cb = sqrt(gravity * b.height);
  const double speed = fmax(fabs(ua) + ca, fabs(ub) + cb);
  const double pa = a.discharge * ua + gravity * a.height * a.height / 2;
  const double pb = b.discharge * ub + gravity * b.height * b.height / 2;
  Cell f = {(a.discharge + b.discharge) / 2 - speed * (b.height - a.height) / 2,
            (pa + pb) / 2 - speed * (b.discharge - a.discharge) / 2};
  return f;
}

static void flow(Cell* cells, int n) {
  fill_halo(cells, n);
  Cell in = flux(cells[0], cells[1]);
  for (int i = 1; i <= n; ++i) {
    const Cell out = flux(cells[i], cells[i + 1]);
    cells[i].height += dt / dx * (in.height - out.height);
    cells[i].discharge += dt / dx * (in.discharge - out.discharge);
    in = out;
  }
}

static double volume(const Cell* cells, int n) {
  double sum = 0;
  for (int i = 1; i <= n; ++i) sum += cells[i].height * dx;
#ifdef TAILRACE_WITH_MPI
  MPI_Allreduce(MPI_IN_PLACE, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
#endif
  return sum;
}

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] == '-') {
    printf("usage: %s [FILE]\nWrites FILE, canal.h5 if none is named.\n", argv[0]);
    return strcmp(argv[1], "--help") == 0 ? 0 : 2;
  }
#ifdef TAILRACE_WITH_MPI
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
#endif
  const char* path = argc > 1 ? argv[1] : "canal.h5";
  const int first = N_CELLS * rank / n_ranks, n = N_CELLS * (rank + 1) / n_ranks - first;
  Cell* cells = calloc((size_t)n + 2, sizeof *cells);
  double* values = malloc(((size_t)n + 1) * sizeof *values);
  for (int i = 1; i <= n; ++i) { /* a hill of water, 1 m high, on 10 m */
    const double x = (first + i - 300) / 40.0;
    cells[i].height = 10 + exp(-x * x);
  }
  double positions[N_CELLS]; /* positions of all cells, on every rank */
  for (int i = 0; i < N_CELLS; ++i) positions[i] = i * dx;
  const double volume_at_start = volume(cells, n);

  const uint64_t shape = N_CELLS, start = (uint64_t)first, count = (uint64_t)n;
  tailrace_file* file = NULL;
  const char* const names[] = {"x"};
  tailrace_field height, discharge;
  for (int output = 0; output < N_OUTPUTS; ++output) {
    if (output == 0 || output == N_OUTPUTS / 2) {
      const char* options = "over-time=on,replace=on";
      if (output == 0) {
        check(tailrace_file_create(path, ALL_RANKS, options, &file));
      } else {
        check(tailrace_file_close(file));
        check(tailrace_file_open(path, ALL_RANKS, options, &file));
      }
      check(tailrace_field_define_named(file, "/height", TAILRACE_F64, 1, &shape, names, NULL,
                                        "codec=portable,bound=abs=1e-4", &height));
      check(tailrace_field_define_named(file, "/discharge", TAILRACE_F64, 1, &shape, names, NULL,
                                        "codec=portable,bound=rel=1e-4", &discharge));
      check(tailrace_attribute_set_text(file, "/height", "units", "m"));
      check(tailrace_attribute_set_text(file, "/discharge", "units", "m2 s-1"));
      check(tailrace_coordinate_set(file, "/x", TAILRACE_F64, N_CELLS, positions, "m"));
    }
    check(tailrace_time_set(file, "/time", output * STEPS_PER_OUTPUT * dt, "s"));
    for (int i = 1; i <= n; ++i) values[i - 1] = cells[i].height;
    check(tailrace_field_put_copy(file, height, &start, &count, values)); /* values may be
                                                                             overwritten now */
    for (int i = 1; i <= n; ++i) values[i - 1] = cells[i].discharge;
    check(tailrace_field_put(file, discharge, &start, &count, values));
    check(tailrace_file_end_step(file, NULL));
    for (int step = 0; step < STEPS_PER_OUTPUT; ++step) flow(cells, n);
  }
  check(tailrace_file_close(file));

  const double drift = fabs(volume(cells, n) / volume_at_start - 1);
  if (rank == 0) printf("%d outputs; volume changed by %.1e of its amount\n", N_OUTPUTS, drift);
  free(cells);
  free(values);
#ifdef TAILRACE_WITH_MPI
  MPI_Finalize();
#endif
  return drift < 1e-12 ? 0 : 1;
}
