/* Definitions that differ between ranks: attributes, for which rank 0's count, and everything else
 * in safe mode (PNETCDF_SAFE_MODE=1). Also a dataset that is opened a second time before it is
 * closed. */

#define _POSIX_C_SOURCE 200112L /* setenv */

#include <string.h>

#include "show.h"

/* Code expected in safe mode. With a single rank nothing can differ. */
static int differing(int code) { return n_ranks > 1 ? code : NC_NOERR; }

static void attributes(const char* path) {
  int file, dim, variable;
  char text[16] = "", got[16] = "";
  snprintf(text, sizeof(text), "12:00:%02d", rank);
  MUST(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, MPI_INFO_NULL, &file));
  MUST(ncmpi_def_dim(file, "x", 4, &dim));
  MUST(ncmpi_def_var(file, "v", NC_INT, 1, &dim, &variable));
  MUST(ncmpi_put_att_text(file, NC_GLOBAL, "time_of_day", strlen(text), text));
  MUST(ncmpi_put_att_int(file, variable, "rank", NC_INT, 1, &rank));
  SHOW(ncmpi_enddef(file));
  SHOW(ncmpi_close(file));
  MUST(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file));
  int number = -1;
  MUST(ncmpi_get_att_text(file, NC_GLOBAL, "time_of_day", got));
  MUST(ncmpi_get_att_int(file, variable, "rank", &number));
  MUST(ncmpi_close(file));
  SHOW_NUMBER(number);
  if (rank == 0) printf("time_of_day = %s\n", got);
}

static void safe_mode(const char* path) {
  int file, id, dims[2];
  const int one[2] = {1, rank == 0 ? 1 : 2};
  char name[16];
  snprintf(name, sizeof(name), "name%d", rank > 0);
  setenv("PNETCDF_SAFE_MODE", "1", 1);
  const int flags = NC_CLOBBER | (rank == 0 ? 0 : NC_64BIT_OFFSET);
  int code = ncmpi_create(MPI_COMM_WORLD, path, flags, MPI_INFO_NULL, &file);
  SHOW_NUMBER(code - differing(NC_EMULTIDEFINE_CMODE));
  code = ncmpi_def_dim(file, name, 3, &id);
  SHOW_NUMBER(code - differing(NC_EMULTIDEFINE_DIM_NAME));
  code = ncmpi_def_dim(file, "x", 3 + (rank > 0), &id);
  SHOW_NUMBER(code - differing(NC_EMULTIDEFINE_DIM_SIZE));
  MUST(ncmpi_def_dim(file, "y", 3, &dims[0]));
  MUST(ncmpi_def_dim(file, "z", 3, &dims[1]));
  code = ncmpi_def_var(file, name, NC_INT, 1, dims, &id);
  SHOW_NUMBER(code - differing(NC_EMULTIDEFINE_VAR_NAME));
  code = ncmpi_def_var(file, "t", rank == 0 ? NC_INT : NC_FLOAT, 1, dims, &id);
  SHOW_NUMBER(code - differing(NC_EMULTIDEFINE_VAR_TYPE));
  code = ncmpi_def_var(file, "n", NC_INT, rank == 0 ? 1 : 2, dims, &id);
  SHOW_NUMBER(code - differing(NC_EMULTIDEFINE_VAR_NDIMS));
  code = ncmpi_def_var(file, "d", NC_INT, 1, &dims[rank > 0], &id);
  SHOW_NUMBER(code - differing(NC_EMULTIDEFINE_VAR_DIMIDS));
  code = ncmpi_put_att_int(file, NC_GLOBAL, name, NC_INT, 1, one);
  SHOW_NUMBER(code - differing(NC_EMULTIDEFINE_ATTR_NAME));
  code = ncmpi_put_att_int(file, NC_GLOBAL, "a", rank == 0 ? NC_INT : NC_SHORT, 1, one);
  SHOW_NUMBER(code - differing(NC_EMULTIDEFINE_ATTR_TYPE));
  code = ncmpi_put_att_int(file, NC_GLOBAL, "b", NC_INT, rank == 0 ? 1 : 2, one);
  SHOW_NUMBER(code - differing(NC_EMULTIDEFINE_ATTR_LEN));
  code = ncmpi_put_att_int(file, NC_GLOBAL, "c", NC_INT, 2, one);
  SHOW_NUMBER(code - differing(NC_EMULTIDEFINE_ATTR_VAL));
  /* One rank's bad argument is an error on all ranks. */
  SHOW_NUMBER(ncmpi_def_dim(file, rank == n_ranks - 1 ? "bad/name" : "good", 3, &id));
  SHOW(ncmpi_enddef(file));
  SHOW(ncmpi_close(file));
  MUST(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &file));
  int n_dims, n_vars, n_atts;
  MUST(ncmpi_inq(file, &n_dims, &n_vars, &n_atts, NULL));
  if (n_ranks > 1 && rank == 0) printf("%d %d %d defined\n", n_dims, n_vars, n_atts);
  MUST(ncmpi_close(file));
  unsetenv("PNETCDF_SAFE_MODE");
}

static void opened_twice(const char* path) {
  int file, again, dim, variable, format = -1;
  MUST(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
  MUST(ncmpi_def_dim(file, "x", n_ranks, &dim));
  MUST(ncmpi_def_var(file, "v", NC_INT, 1, &dim, &variable));
  MUST(ncmpi_enddef(file));
  const MPI_Offset at = rank;
  const int value = 100 + rank;
  MUST(ncmpi_put_var1_int_all(file, variable, &at, &value));
  int* values = calloc((size_t)n_ranks, sizeof(int));
  SHOW(ncmpi_open(MPI_COMM_WORLD, path, NC_NOWRITE, MPI_INFO_NULL, &again));
  MUST(ncmpi_get_var_int_all(again, variable, values));
  SHOW_VALUES("opened before it was closed", values, n_ranks);
  free(values);
  MUST(ncmpi_close(again));
  MUST(ncmpi_close(file));
  MUST(ncmpi_inq_file_format(path, &format));
  SHOW_NUMBER(format);
}

int main(int argc, char** argv) {
  start(&argc, &argv);
  attributes(argv[1]);
  safe_mode(argv[1]);
  opened_twice(argv[1]);
  MPI_Finalize();
  return 0;
}
