/* Positions given by MPI datatypes over a variable's bytes (vard). Covers every constructor,
 * fixed-size and record variables, both modes, conversion, ranks without data, and refusals. */

#include <string.h>

#include "show.h"

enum { ROWS = 6, WIDTH = 8 };

static int file, fixed, numbers, bytes;

static MPI_Datatype ready(MPI_Datatype type) {
  MPI_Type_commit(&type);
  return type;
}

/* Put `n` elements by the filetype, show the variable's new values, and read them back. */
static void round_trip(const char* label, int variable, MPI_Datatype filetype, int n) {
  static int turn = 0;
  double values[ROWS * WIDTH], back[ROWS * WIDTH];
  for (int i = 0; i < n; ++i) values[i] = (turn * 31 + rank * 50 + i) % 120;
  ++turn;
  MUST(ncmpi_put_vard_all(file, variable, filetype, values, n, MPI_DOUBLE));
  double all[ROWS * WIDTH * 16];
  MPI_Offset start_at[2] = {0, 0}, count[2] = {ROWS, (MPI_Offset)WIDTH * n_ranks};
  if (variable != fixed) {
    int dim;
    MUST(ncmpi_inq_unlimdim(file, &dim));
    MUST(ncmpi_inq_dimlen(file, dim, &count[0]));
  }
  MUST(ncmpi_get_vara_double_all(file, variable, start_at, count, all));
  SHOW_VALUES(label, all, count[0] * count[1]);
  memset(back, 0, sizeof(back));
  MUST(ncmpi_get_vard_all(file, variable, filetype, back, n, MPI_DOUBLE));
  SHOW_NUMBER(worst(-(memcmp(values, back, (size_t)n * sizeof(double)) != 0)));
}

/* Types over a rank's own columns of `fixed`, whose rows have `width` floats. */
static void fixed_size(void) {
  const int width = WIDTH * n_ranks, first = WIDTH * rank;
  const MPI_Aint element = sizeof(float);
  MPI_Datatype inner, type;
  int sizes[2] = {ROWS, width}, counts[2] = {3, 5}, starts[2] = {2, first + 1};
  MPI_Type_create_subarray(2, sizes, counts, starts, MPI_ORDER_C, MPI_FLOAT, &type);
  round_trip("subarray", fixed, ready(type), 15);
  MPI_Type_free(&type);
  int turned[2] = {width, ROWS}, turned_counts[2] = {5, 3}, turned_starts[2] = {first + 1, 2};
  MPI_Type_create_subarray(2, turned, turned_counts, turned_starts, MPI_ORDER_FORTRAN, MPI_FLOAT,
                           &type);
  round_trip("subarray of Fortran", fixed, ready(type), 15);
  MPI_Type_free(&type);

  /* A vector begins at the variable's first byte; hindexed moves it to the rank's columns as one
     block. */
  MPI_Type_vector(3, 2, 2 * width, MPI_FLOAT, &inner);
  int one = 1, blocks[3] = {1, 2, 3}, places[3] = {0, 2, 5};
  MPI_Aint at = element * (width + first);
  MPI_Type_create_hindexed(1, &one, &at, inner, &type);
  round_trip("vector", fixed, ready(type), 6);
  MPI_Type_free(&type);
  MPI_Type_free(&inner);
  MPI_Type_create_hvector(2, 3, element * 4 * width, MPI_FLOAT, &inner);
  MPI_Type_create_hindexed(1, &one, &at, inner, &type);
  round_trip("hvector", fixed, ready(type), 6);
  MPI_Type_free(&type);
  MPI_Type_free(&inner);
  MPI_Type_indexed(3, blocks, places, MPI_FLOAT, &inner);
  MPI_Type_create_struct(1, &one, &at, &inner, &type);
  round_trip("indexed in a struct", fixed, ready(type), 6);
  MPI_Type_free(&type);
  MPI_Type_free(&inner);
  MPI_Type_create_indexed_block(2, 2, places, MPI_FLOAT, &inner);
  MPI_Type_dup(inner, &type);
  MPI_Type_free(&inner);
  MPI_Type_create_resized(type, 0, width * element, &inner);
  MPI_Type_free(&type);
  MPI_Datatype rows;
  MPI_Type_contiguous(2, inner, &rows);
  MPI_Type_create_hindexed(1, &one, &at, rows, &type);
  round_trip("contiguous of resized of dup", fixed, ready(type), 8);
  MPI_Type_free(&type);
  MPI_Type_free(&rows);
  MPI_Type_free(&inner);

  /* Rank 0 only, complete rows and beyond their ends. */
  MPI_Type_contiguous(rank == 0 ? 2 * WIDTH + 3 : 0, MPI_FLOAT, &type);
  round_trip("a run of rank 0", fixed, ready(type), rank == 0 ? 2 * WIDTH + 3 : 0);
  MPI_Type_free(&type);
}

static void records(void) {
  MPI_Offset step;
  MUST(ncmpi_inq_recsize(file, &step));
  SHOW_NUMBER(step);
  const MPI_Aint first = (MPI_Aint)WIDTH * rank, element = sizeof(int);
  int lengths[2] = {3, 2};
  MPI_Aint at[2] = {first * element, 3 * step + (first + 1) * element};
  MPI_Datatype type;
  MPI_Type_create_hindexed(2, lengths, at, MPI_INT, &type);
  MUST(ncmpi_fill_var_rec(file, numbers, 0));
  MUST(ncmpi_fill_var_rec(file, numbers, 1));
  MUST(ncmpi_fill_var_rec(file, numbers, 2));
  MUST(ncmpi_fill_var_rec(file, numbers, 3));
  round_trip("records", numbers, ready(type), 5);
  MPI_Type_free(&type);

  /* Elements of one byte: the records of `bytes` are padded to multiples of 4. */
  for (int i = 0; i < 4; ++i) MUST(ncmpi_fill_var_rec(file, bytes, i));
  at[0] = first;
  at[1] = step + first + 2;
  MPI_Type_create_hindexed(2, lengths, at, MPI_SIGNED_CHAR, &type);
  round_trip("records of bytes", bytes, ready(type), 5);
  MPI_Type_free(&type);
}

static void refused(void) {
  float values[4] = {1, 2, 3, 4};
  MPI_Datatype mixed;
  const int lengths[2] = {1, 1};
  const MPI_Aint at[2] = {0, 8};
  const MPI_Datatype types[2] = {MPI_FLOAT, MPI_INT};
  MPI_Type_create_struct(2, lengths, at, types, &mixed);
  MPI_Type_commit(&mixed);
  SHOW(ncmpi_put_vard_all(file, fixed, MPI_INT, values, 1, MPI_FLOAT));
  SHOW(ncmpi_put_vard_all(file, fixed, mixed, values, 2, MPI_FLOAT));
  SHOW(ncmpi_put_vard_all(file, fixed, MPI_FLOAT, values, 2, MPI_FLOAT));
  SHOW(ncmpi_put_vard_all(file, fixed, MPI_FLOAT, values, 1, MPI_CHAR));
  SHOW(ncmpi_put_vard_all(file, fixed, MPI_DATATYPE_NULL, values, 1, MPI_FLOAT));
  SHOW(ncmpi_put_vard_all(file, fixed, MPI_FLOAT, values, 0, MPI_FLOAT));
  SHOW(ncmpi_put_vard_all(file, 99, MPI_FLOAT, values, 1, MPI_FLOAT));
  SHOW(ncmpi_put_vard_all(file, NC_GLOBAL, MPI_FLOAT, values, 1, MPI_FLOAT));
  SHOW(ncmpi_put_vard(file, fixed, MPI_FLOAT, values, 1, MPI_FLOAT));
  MPI_Type_free(&mixed);
}

int main(int argc, char** argv) {
  start(&argc, &argv);
  int dims[2], row;
  MUST(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER, MPI_INFO_NULL, &file));
  MUST(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
  MUST(ncmpi_def_dim(file, "row", ROWS, &row));
  MUST(ncmpi_def_dim(file, "x", (MPI_Offset)WIDTH * n_ranks, &dims[1]));
  MUST(ncmpi_def_var(file, "numbers", NC_INT, 2, dims, &numbers));
  MUST(ncmpi_def_var(file, "bytes", NC_BYTE, 2, dims, &bytes));
  int other;
  MUST(ncmpi_def_var(file, "odd", NC_BYTE, 1, dims, &other)); /* 1 byte per record, 3 of padding */
  dims[0] = row;
  MUST(ncmpi_def_var(file, "fixed", NC_FLOAT, 2, dims, &fixed));
  MUST(ncmpi_set_fill(file, NC_FILL, NULL));
  SHOW(ncmpi_put_vard_all(file, fixed, MPI_FLOAT, &other, 1, MPI_FLOAT));
  MUST(ncmpi_enddef(file));
  fixed_size();
  records();
  refused();

  /* Independent access: each rank puts the first value of its columns without a memory datatype. */
  float mine = (float)(7 + rank), back = 0;
  int one = 1;
  MPI_Aint at = (MPI_Aint)sizeof(float) * WIDTH * rank;
  MPI_Datatype type;
  MPI_Type_create_hindexed(1, &one, &at, MPI_FLOAT, &type);
  MPI_Type_commit(&type);
  MUST(ncmpi_begin_indep_data(file));
  MUST(ncmpi_put_vard(file, fixed, type, &mine, 0, MPI_DATATYPE_NULL));
  MUST(ncmpi_get_vard(file, fixed, type, &back, 0, MPI_DATATYPE_NULL));
  MUST(ncmpi_end_indep_data(file));
  SHOW_VALUES("independently", &back, 1);
  MPI_Type_free(&type);
  MUST(ncmpi_close(file));
  MPI_Finalize();
  return 0;
}
