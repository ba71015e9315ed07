/* Program on netCDF-C's PnetCDF dispatch (NC_PNETCDF), so that netCDF-C makes the ncmpi_* calls. It
 * prints the values it reads, which ../python/test_pnetcdf.py compares. */

#include <mpi.h>
#include <netcdf.h>
#include <netcdf_par.h>
#include <stdio.h>

#define MUST(expression)                                                               \
  do {                                                                                 \
    const int code_ = (expression);                                                    \
    if (code_ != NC_NOERR) {                                                           \
      fprintf(stderr, "line %d: %s: %s\n", __LINE__, #expression, nc_strerror(code_)); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                    \
    }                                                                                  \
  } while (0)

enum { ROWS = 4, WIDTH = 6, RECORDS = 3 };

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank, n_ranks, file, dims[3], temperature, fixed;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  if (argc < 2) MPI_Abort(MPI_COMM_WORLD, 2);
  const float fill = -99.f;

  MUST(nc_create_par(argv[1], NC_CLOBBER | NC_PNETCDF, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
  MUST(nc_put_att_text(file, NC_GLOBAL, "title", 5, "small"));
  MUST(nc_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
  MUST(nc_def_dim(file, "y", (size_t)(ROWS * n_ranks), &dims[1]));
  MUST(nc_def_dim(file, "x", WIDTH, &dims[2]));
  MUST(nc_def_var(file, "temperature", NC_FLOAT, 3, dims, &temperature));
  MUST(nc_put_att_text(file, temperature, "units", 1, "K"));
  MUST(nc_put_att_float(file, temperature, "_FillValue", NC_FLOAT, 1, &fill));
  MUST(nc_def_var(file, "fixed", NC_INT, 2, dims + 1, &fixed));
  MUST(nc_enddef(file));
  MUST(nc_var_par_access(file, temperature, NC_COLLECTIVE));

  float values[ROWS * WIDTH];
  int numbers[ROWS * WIDTH];
  size_t start[3] = {0, (size_t)(ROWS * rank), 0}, count[3] = {1, ROWS, WIDTH};
  for (size_t record = 0; record < RECORDS; ++record) {
    for (int i = 0; i < ROWS * WIDTH; ++i) values[i] = (float)(100 * (int)record + 10 * rank + i);
    start[0] = record;
    MUST(nc_put_vara_float(file, temperature, start, count, values));
  }
  for (int i = 0; i < ROWS * WIDTH; ++i) numbers[i] = 1000 * rank + i;
  MUST(nc_put_vara_int(file, fixed, start + 1, count + 1, numbers));
  const ptrdiff_t stride[2] = {2, 3};
  const size_t few[2] = {ROWS / 2, WIDTH / 3};
  MUST(nc_put_vars_int(file, fixed, start + 1, few, stride, numbers));
  MUST(nc_close(file));

  /* netCDF-C reads our files with its own HDF5, and classic files through PnetCDF. */
  MUST(nc_open_par(argv[1], NC_NOWRITE, MPI_COMM_WORLD, MPI_INFO_NULL, &file));
  size_t n_records = 0;
  MUST(nc_inq_dimlen(file, dims[0], &n_records));
  double sum = 0, all = 0;
  for (start[0] = 0; start[0] < n_records; ++start[0]) {
    MUST(nc_get_vara_float(file, temperature, start, count, values));
    for (int i = 0; i < ROWS * WIDTH; ++i) sum += (1 + i) * values[i];
  }
  MUST(nc_get_vara_int(file, fixed, start + 1, count + 1, numbers));
  for (int i = 0; i < ROWS * WIDTH; ++i) sum += (1 + i) * numbers[i];
  MUST(nc_close(file));
  MPI_Reduce(&sum, &all, 1, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
  if (rank == 0) printf("%zu records, sum %.17g\n", n_records, all);
  MPI_Finalize();
  return 0;
}
