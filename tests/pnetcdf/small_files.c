/* Program that creates and closes small files; test_small_files.py counts its MPI calls.
 *
 *   small_files FOLDER N    prints, for N empty and N tiny files, the time of one in milliseconds
 */

#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static int rank;

static void check(int status) {
  if (status == NC_NOERR) return;
  fprintf(stderr, "rank %d: %s\n", rank, ncmpi_strerror(status));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static void write_file(const char* path, int tiny) {
  int file = 0;
  int dimension = 0;
  int variable = 0;
  int n_ranks = 1;
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  check(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, MPI_INFO_NULL, &file));
  if (tiny) {
    check(ncmpi_def_dim(file, "x", 10 * n_ranks, &dimension));
    check(ncmpi_def_var(file, "v", NC_INT, 1, &dimension, &variable));
  }
  check(ncmpi_enddef(file));
  if (tiny) {
    const MPI_Offset start = 10 * rank;
    const MPI_Offset count = 10;
    int values[10];
    for (int i = 0; i < 10; ++i) values[i] = 10 * rank + i;
    check(ncmpi_put_vara_int_all(file, variable, &start, &count, values));
  }
  check(ncmpi_close(file));
}

static double cpu_s(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  const int n = argc > 2 ? atoi(argv[2]) : 1;
  char path[4096];
  for (int tiny = 0; tiny < 2; ++tiny) {
    snprintf(path, sizeof path, "%s/%s.nc", argc > 1 ? argv[1] : ".", tiny ? "tiny" : "empty");
    for (int i = 0; i < 2; ++i) write_file(path, tiny); /* The first file costs more. */
    MPI_Pcontrol(1);
    write_file(path, tiny);
    if (rank == 0) printf("%s ", tiny ? "tiny" : "empty");
    fflush(stdout);
    MPI_Pcontrol(2);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = MPI_Wtime();
    const double start_cpu_s = cpu_s();
    for (int i = 0; i < n; ++i) write_file(path, tiny);
    double used_s[2] = {MPI_Wtime() - start_s, cpu_s() - start_cpu_s};
    double sum_s[2];
    MPI_Reduce(used_s, sum_s, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    int n_ranks = 1;
    MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
    if (rank == 0) {
      printf("%.3f ms, CPU of all ranks %.3f ms\n", 1e3 * sum_s[0] / n / n_ranks,
             1e3 * sum_s[1] / n);
    }
  }
  MPI_Finalize();
  return 0;
}
