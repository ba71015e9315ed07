/* Opens a file of any kind and prints its contents. With a second argument it creates a file and
 * calls functions that compressed files do not support, or ("extend") adds a variable to a file. */

#include <string.h>

#include "show.h"

static void refused(const char* path) {
  int file, dim, variable;
  MPI_Offset place;
  int values[2] = {1, 2};
  MUST(ncmpi_create(MPI_COMM_WORLD, path, NC_CLOBBER, MPI_INFO_NULL, &file));
  MUST(ncmpi_def_dim(file, "x", 1, &dim));
  MUST(ncmpi_def_var(file, "v", NC_INT, 1, &dim, &variable));
  MUST(ncmpi_enddef(file));
  SHOW(ncmpi_inq_varoffset(file, variable, &place));
  SHOW(ncmpi_inq_varoffset(file, variable, &place));
  MPI_Datatype two;
  MPI_Type_contiguous(2, MPI_INT, &two);
  MPI_Type_commit(&two);
  SHOW(ncmpi_put_vard_all(file, variable, two, values, 2, MPI_INT)); /* changes nothing */
  MPI_Type_free(&two);
  MUST(ncmpi_close(file));
}

static void extend(const char* path) {
  int file, dim, variable, n_atts;
  MUST(ncmpi_open(MPI_COMM_WORLD, path, NC_WRITE, MPI_INFO_NULL, &file));
  MUST(ncmpi_redef(file));
  MUST(ncmpi_put_att_text(file, NC_GLOBAL, "words", 5, "added"));
  MUST(ncmpi_def_dim(file, "added_dim", 5, &dim));
  MUST(ncmpi_def_var(file, "added", NC_INT, 1, &dim, &variable));
  MUST(ncmpi_enddef(file));
  MUST(ncmpi_inq_natts(file, &n_atts));
  if (rank == 0) printf("%d attributes\n", n_atts);
  const int values[5] = {1, 2, 3, 4, 5};
  MUST(ncmpi_put_var_int_all(file, variable, values));
  MUST(ncmpi_close(file));
}

int main(int argc, char** argv) {
  start(&argc, &argv);
  if (argc > 2) {
    if (strcmp(argv[2], "extend") == 0) {
      extend(argv[1]);
    } else {
      refused(argv[1]);
    }
    MPI_Finalize();
    return 0;
  }
  int file, n_dims, n_vars, n_atts;
  const int code = ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file);
  SHOW(code);
  if (code == NC_NOERR) {
    MUST(ncmpi_inq(file, &n_dims, &n_vars, &n_atts, NULL));
    if (rank == 0) {
      printf("%d dimensions, %d variables, %d attributes\n", n_dims, n_vars, n_atts);
    }
    char words[64] = "";
    if (ncmpi_get_att_text(file, NC_GLOBAL, "words", words) == NC_NOERR && rank == 0) {
      printf("words = %s\n", words);
    }
    int variable;
    double values[3] = {0};
    if (ncmpi_inq_varid(file, "v", &variable) == NC_NOERR) {
      MUST(ncmpi_get_var_double_all(file, variable, values));
      if (rank == 0) printf("sum of v: %g\n", values[0] + values[1] + values[2]);
    }
    MUST(ncmpi_close(file));
  }
  MPI_Finalize();
  return 0;
}
