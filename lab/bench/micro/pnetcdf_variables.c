/* Measures the cost of many small variables in a program on PnetCDF. Defines N variables of 64
 * doubles each, puts them, closes the file, and prints the CPU seconds of each stage as JSON. The
 * program is linked with the real library only; lab/bench/all runs it with and without a preloaded
 * libtailrace_pnetcdf.so.
 *
 *   mpiexec -n 1 pnetcdf_variables FILE N
 */

#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

enum { n_values = 64 };

static void check(int status, const char* call) {
  if (status == NC_NOERR) return;
  fprintf(stderr, "pnetcdf_variables: %s: %s\n", call, ncmpi_strerror(status));
  MPI_Abort(MPI_COMM_WORLD, 1);
}

static double cpu_s(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  const int n_variables = argc == 3 ? atoi(argv[2]) : 0;
  if (n_variables < 1) {
    fprintf(stderr, "usage: pnetcdf_variables FILE N\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  int* variables = malloc((size_t)n_variables * sizeof *variables);
  if (variables == NULL) MPI_Abort(MPI_COMM_WORLD, 3);

  const double start_s = cpu_s();
  int file = 0;
  int dimension = 0;
  check(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file),
        "ncmpi_create");
  check(ncmpi_def_dim(file, "x", n_values, &dimension), "ncmpi_def_dim");
  for (int i = 0; i < n_variables; ++i) {
    char name[32];
    snprintf(name, sizeof name, "variable_%d", i);
    check(ncmpi_def_var(file, name, NC_DOUBLE, 1, &dimension, &variables[i]), "ncmpi_def_var");
  }
  check(ncmpi_enddef(file), "ncmpi_enddef");
  const double defined_s = cpu_s();
  for (int i = 0; i < n_variables; ++i) {
    double values[n_values];
    for (int k = 0; k < n_values; ++k) values[k] = i + 0.5 * k;
    check(ncmpi_put_var_double_all(file, variables[i], values), "ncmpi_put_var_double_all");
  }
  const double put_s = cpu_s();
  check(ncmpi_close(file), "ncmpi_close");
  const double closed_s = cpu_s();

  int rank = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank == 0) {
    printf(
        "{\"variables\": %d, \"define_cpu_s\": %.6f, \"put_cpu_s\": %.6f, "
        "\"close_cpu_s\": %.6f, \"all_cpu_s\": %.6f}\n",
        n_variables, defined_s - start_s, put_s - defined_s, closed_s - put_s, closed_s - start_s);
  }
  free(variables);
  MPI_Finalize();
  return 0;
}
