// Small PnetCDF program, which tests/python/test_pnetcdf_link.py links to our library in all ways.
//
//   linked FILE   all ranks write a variable and read it; prints if the real library is loaded

#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <string.h>

enum { n_rows = 8, n_columns = 1000 };

static int failures = 0;

static void expect(int status, const char* what) {
  if (status == NC_NOERR) return;
  fprintf(stderr, "linked: %s: %s\n", what, ncmpi_strerror(status));
  ++failures;
}

/// Count the lines of this process's memory map that name the real library.
static int n_loaded(void) {
  char line[4096];
  int n = 0;
  FILE* const map = fopen("/proc/self/maps", "r");
  while (map != NULL && fgets(line, sizeof line, map) != NULL)
    n += strstr(line, "/libpnetcdf") != 0;
  if (map == NULL) return -1;
  fclose(map);
  return n;
}

int main(int argc, char** argv) {
  int rank = 0, n_ranks = 0, file = 0, id = 0, dims[2] = {0, 0};
  static float values[n_rows][n_columns];
  static float again[n_rows][n_columns];
  if (argc < 2) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  for (int i = 0; i < n_rows; ++i) {
    for (int j = 0; j < n_columns; ++j)
      values[i][j] = (float)(rank * n_rows + i) + 0.001F * (float)j;
  }
  expect(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER, MPI_INFO_NULL, &file), "create");
  expect(ncmpi_def_dim(file, "y", (MPI_Offset)n_rows * n_ranks, &dims[0]), "def_dim");
  expect(ncmpi_def_dim(file, "x", n_columns, &dims[1]), "def_dim");
  expect(ncmpi_def_var(file, "temp", NC_FLOAT, 2, dims, &id), "def_var");
  expect(ncmpi_put_att_text(file, id, "units", 1, "K"), "put_att_text");
  expect(ncmpi_enddef(file), "enddef");
  const MPI_Offset start[2] = {(MPI_Offset)rank * n_rows, 0};
  const MPI_Offset count[2] = {n_rows, n_columns};
  expect(ncmpi_put_vara_float_all(file, id, start, count, &values[0][0]), "put");
  expect(ncmpi_close(file), "close");
  expect(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file), "open");
  expect(ncmpi_inq_varid(file, "temp", &id), "inq_varid");
  expect(ncmpi_get_vara_float_all(file, id, start, count, &again[0][0]), "get");
  expect(ncmpi_close(file), "close");
  if (memcmp(values, again, sizeof values) != 0) ++failures;
  printf("rank %d of %d: %d failures, real library: %d\n", rank, n_ranks, failures, n_loaded());
  MPI_Finalize();
  return failures != 0;
}
