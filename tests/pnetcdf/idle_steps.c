/* Program whose ranks wait for each other after each flush, for tests/python/test_idle.py. It knows
 * nothing of Tailrace.
 *
 *   idle_steps FILE [END]
 *
 * It writes records by collective and nonblocking puts, changes an attribute, and adds a variable.
 * END: "sync" flushes once more before the end; "abort" calls ncmpi_abort; "kill" kills all ranks,
 * and "exit" ends them without ncmpi_close and MPI_Finalize, after the last flush. "limit": after
 * the first flush the file may not grow, until a call has failed. */

#include <mpi.h>
#include <pnetcdf.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

enum { ROWS = 516, ROW = 1024, STEPS = 4 };

static int rank, n_ranks;

static int limited = 0;

/* Limit the length of files; 0: no limit. */
static void limit_files(rlim_t n_bytes) {
  struct rlimit limit;
  limited = n_bytes != 0;
  getrlimit(RLIMIT_FSIZE, &limit);
  limit.rlim_cur = limited ? n_bytes : limit.rlim_max;
  setrlimit(RLIMIT_FSIZE, &limit);
}

static void check(int status, const char* what) {
  if (status == NC_NOERR) return;
  if (limited) {
    fprintf(stderr, "rank %d: failed as it should: %s: %s\n", rank, what, ncmpi_strerror(status));
    limit_files(0);
    return;
  }
  fprintf(stderr, "rank %d: %s: %s\n", rank, what, ncmpi_strerror(status));
  MPI_Abort(MPI_COMM_WORLD, 1);
}
#define DO(call) check(call, #call)

/* Wait for the last rank, which is slow. */
static void exchange(void) {
  const double end = MPI_Wtime() + (rank == n_ranks - 1 ? 0.3 : 0.001);
  volatile double sum = 0;
  while (MPI_Wtime() < end) sum += 1;
  int value = rank == n_ranks - 1 ? 7 : 0;
  MPI_Bcast(&value, 1, MPI_INT, n_ranks - 1, MPI_COMM_WORLD);
  if (value != 7) MPI_Abort(MPI_COMM_WORLD, 2);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  const char* const end = argc > 2 ? argv[2] : "";
  int file, u, later = -1, dimensions[3], status[1];
  DO(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
  DO(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dimensions[0]));
  DO(ncmpi_def_dim(file, "y", ROWS, &dimensions[1]));
  DO(ncmpi_def_dim(file, "x", ROW, &dimensions[2]));
  DO(ncmpi_def_var(file, "u", NC_DOUBLE, 3, dimensions, &u));
  DO(ncmpi_enddef(file));
  const MPI_Offset from = ROWS * rank / n_ranks;
  MPI_Offset start[3] = {0, from, 0};
  const MPI_Offset count[3] = {1, ROWS * (rank + 1) / n_ranks - from, ROW};
  double* const values = malloc(sizeof(double) * (size_t)(count[1] * ROW));
  for (int step = 0; step < STEPS; ++step) {
    start[0] = step;
    for (MPI_Offset i = 0; i < count[1] * ROW; ++i) {
      values[i] = (double)((from * ROW + i) % 1000 + step) * 0.5;
    }
    if (step % 2 == 0) {
      DO(ncmpi_put_vara_double_all(file, u, start, count, values));
    } else {
      int request;
      DO(ncmpi_iput_vara_double(file, u, start, count, values, &request));
      DO(ncmpi_wait_all(file, 1, &request, status));
    }
    DO(ncmpi_sync(file));
    if (step == 0 && strcmp(end, "limit") == 0) {
      struct stat facts;
      if (stat(argv[1], &facts) != 0) MPI_Abort(MPI_COMM_WORLD, 5);
      MPI_Barrier(MPI_COMM_WORLD);
      limit_files((rlim_t)facts.st_size + 1024);
    }
    exchange();
    /* ncmpi_enddef completes a flush; the next flush creates the new variable. */
    if (step == (strcmp(end, "limit") == 0 ? 2 : 1)) {
      DO(ncmpi_redef(file));
      DO(ncmpi_put_att_text(file, u, "units", 1, "K"));
      DO(ncmpi_def_var(file, "later", NC_INT, 1, &dimensions[1], &later));
      DO(ncmpi_enddef(file));
    }
  }
  free(values);
  if (strcmp(end, "sync") == 0) DO(ncmpi_sync(file));
  if (strcmp(end, "kill") == 0) raise(SIGKILL);
  if (strcmp(end, "exit") == 0) exit(0);
  if (strcmp(end, "abort") == 0) {
    DO(ncmpi_abort(file));
  } else {
    const MPI_Offset n = count[1];
    int* const numbers = malloc(sizeof(int) * (size_t)n);
    for (MPI_Offset i = 0; i < n; ++i) numbers[i] = (int)(from + i);
    DO(ncmpi_put_vara_int_all(file, later, &from, &n, numbers));
    /* Each rank sees the values of all ranks, those of the last flush, too. */
    double one[2];
    const MPI_Offset first[3] = {STEPS - 1, 0, 0}, last[3] = {STEPS - 1, ROWS - 1, ROW - 1};
    DO(ncmpi_begin_indep_data(file));
    DO(ncmpi_get_var1_double(file, u, first, &one[0]));
    DO(ncmpi_get_var1_double(file, u, last, &one[1]));
    DO(ncmpi_end_indep_data(file));
    if (one[0] != (STEPS - 1) * 0.5) MPI_Abort(MPI_COMM_WORLD, 3);
    if (one[1] != (ROWS * ROW - 1) % 1000 * 0.5 + (STEPS - 1) * 0.5) MPI_Abort(MPI_COMM_WORLD, 4);
    free(numbers);
    DO(ncmpi_close(file));
  }
  MPI_Finalize();
  return 0;
}
