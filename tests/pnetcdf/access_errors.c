/* PnetCDF's answers to wrong arguments and modes of access. Collective functions must survive a
 * failure of a single rank. */

#include "show.h"

/* Special counts of flexible functions: -1 means everything that the part holds. */
static void show_counts(int file, int varid) {
  const int numbers[4] = {4, 5, 6, 7};
  int back[4] = {0}, request;
  MPI_Offset start = 0, count = 4, none = 0, map = 1;
  MPI_Offset *starts[] = {&start}, *counts[] = {&count};
  MPI_Datatype pairs;
  MPI_Type_contiguous(2, MPI_INT, &pairs);
  MPI_Type_commit(&pairs);
  SHOW(ncmpi_put_vara_all(file, varid, &start, &count, numbers, -1, MPI_INT));
  SHOW(ncmpi_get_vara_all(file, varid, &start, &count, back, -1, MPI_INT));
  for (int i = 0; i < 4; ++i) SHOW_NUMBER(back[i]);
  SHOW(ncmpi_put_varm_all(file, varid, &start, &count, NULL, &map, numbers, -1, MPI_INT));
  SHOW(ncmpi_put_varn_all(file, varid, 1, starts, counts, numbers, -1, MPI_INT));
  SHOW(ncmpi_iput_vara(file, varid, &start, &count, numbers, -1, MPI_INT, &request));
  SHOW(ncmpi_wait_all(file, 1, &request, NULL));
  SHOW(ncmpi_put_vara_all(file, varid, &start, &count, numbers, -1, pairs));
  SHOW(ncmpi_put_vara_all(file, varid, &start, &count, numbers, -1, MPI_BYTE));
  SHOW(ncmpi_put_vara_all(file, varid, &start, &none, numbers, -1, pairs));
  SHOW(ncmpi_put_vara_all(file, varid, &start, &count, numbers, -2, MPI_INT));
  SHOW(ncmpi_put_vara_all(file, varid, &start, &count, numbers, -2, pairs));
  SHOW(ncmpi_put_vara_all(file, varid, &start, &none, numbers, -2, MPI_INT));
  SHOW(ncmpi_put_vara_all(file, varid, &start, &count, numbers, -2, MPI_LONG_DOUBLE));
  MPI_Type_free(&pairs);
}

int main(int argc, char** argv) {
  start(&argc, &argv);
  if (rank == 0) {
    for (int code = 1; code > -330; --code) {
      printf("%d %s %s\n", code, ncmpi_strerrno(code), ncmpi_strerror(code));
    }
  }
  int file, dims[2], fixed, growing, text, request = NC_REQ_NULL;
  float values[64] = {0};
  double wide[4] = {1e30, 5, -1e30, 7};
  int numbers[4] = {0};
  MUST(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER, MPI_INFO_NULL, &file));
  MUST(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
  MUST(ncmpi_def_dim(file, "x", 8, &dims[1]));
  MUST(ncmpi_def_var(file, "fixed", NC_INT, 1, &dims[1], &fixed));
  MUST(ncmpi_def_var(file, "growing", NC_FLOAT, 2, dims, &growing));
  MUST(ncmpi_def_var(file, "text", NC_CHAR, 1, &dims[1], &text));
  MPI_Offset start1[1] = {0}, count1[1] = {4}, stride1[1] = {2};
  MPI_Offset start2[2] = {0, 0}, count2[2] = {1, 8};
  SHOW(ncmpi_put_vara_float_all(file, fixed, start1, count1, values));
  SHOW(ncmpi_wait_all(file, 0, NULL, NULL));
  SHOW(ncmpi_sync(file));
  SHOW(ncmpi_begin_indep_data(file));
  MUST(ncmpi_enddef(file));
  SHOW(ncmpi_put_vara_float(file, fixed, start1, count1, values));
  SHOW(ncmpi_put_vara_float_all(file, 77, start1, count1, values));
  SHOW(ncmpi_put_vara_float_all(file, NC_GLOBAL, start1, count1, values));
  SHOW(ncmpi_put_vara_float_all(file, text, start1, count1, values));
  SHOW(ncmpi_put_vara_text_all(file, fixed, start1, count1, "abcd"));
  start1[0] = 8, count1[0] = 0;
  SHOW(ncmpi_put_vara_float_all(file, fixed, start1, count1, values));
  count1[0] = 1;
  SHOW(ncmpi_put_vara_float_all(file, fixed, start1, count1, values));
  start1[0] = -1;
  SHOW(ncmpi_put_vara_float_all(file, fixed, start1, count1, values));
  start1[0] = 6, count1[0] = 3;
  SHOW(ncmpi_put_vara_float_all(file, fixed, start1, count1, values));
  count1[0] = -1;
  SHOW(ncmpi_put_vara_float_all(file, fixed, start1, count1, values));
  SHOW(ncmpi_put_vara_float_all(file, fixed, NULL, count1, values));
  SHOW(ncmpi_put_vara_float_all(file, fixed, start1, NULL, values));
  start1[0] = 0, count1[0] = 4, stride1[0] = 3;
  SHOW(ncmpi_put_vars_float_all(file, fixed, start1, count1, stride1, values));
  stride1[0] = 0;
  SHOW(ncmpi_put_vars_float_all(file, fixed, start1, count1, stride1, values));
  stride1[0] = -1;
  SHOW(ncmpi_put_vars_float_all(file, fixed, start1, count1, stride1, values));
  SHOW(ncmpi_put_varn_float_all(file, fixed, 1, NULL, NULL, values));
  SHOW(ncmpi_get_vara_float_all(file, growing, start2, count2, values));
  count2[0] = 0;
  SHOW(ncmpi_get_vara_float_all(file, growing, start2, count2, values));
  count2[0] = 1;
  SHOW(ncmpi_put_vara_float_all(file, growing, start2, count2, values));
  start2[0] = 1;
  SHOW(ncmpi_get_vara_float_all(file, growing, start2, count2, values));
  SHOW(ncmpi_bput_vara_float(file, growing, start2, count2, values, &request));
  SHOW(ncmpi_buffer_detach(file));
  SHOW(ncmpi_buffer_attach(file, 0));
  SHOW(ncmpi_buffer_attach(file, 8));
  SHOW(ncmpi_buffer_attach(file, 8));
  SHOW(ncmpi_bput_vara_float(file, growing, start2, count2, values, &request));
  SHOW(ncmpi_buffer_detach(file));

  /* Out of range: the other values are converted nevertheless. */
  SHOW(ncmpi_put_vara_double_all(file, fixed, start1, count1, wide));
  SHOW(ncmpi_get_vara_int_all(file, fixed, start1, count1, numbers));
  for (int i = 0; i < 4; ++i) SHOW_NUMBER(numbers[i]);
  const int large[4] = {300, -3, 70000, 5};
  signed char bytes[4] = {0};
  SHOW(ncmpi_put_vara_int_all(file, fixed, start1, count1, large));
  SHOW(ncmpi_get_vara_schar_all(file, fixed, start1, count1, bytes));
  for (int i = 0; i < 4; ++i) SHOW_NUMBER(bytes[i]);

  show_counts(file, fixed);

  /* Only one rank is wrong: it gets its error, the others get their values. */
  const MPI_Offset mine = rank == n_ranks - 1 ? 99 : 0;
  const int put = ncmpi_put_vara_int_all(file, fixed, &mine, count1, large);
  const int got = ncmpi_get_vara_int_all(file, fixed, &mine, count1, numbers);
  const int expected = rank == n_ranks - 1 ? NC_EINVALCOORDS : NC_NOERR;
  SHOW_NUMBER(worst(-(put != expected || got != expected)));

  SHOW(ncmpi_begin_indep_data(file));
  SHOW(ncmpi_put_vara_int_all(file, fixed, start1, count1, large));
  SHOW(ncmpi_wait_all(file, 0, NULL, NULL));
  SHOW(ncmpi_put_vara_int(file, fixed, start1, count1, large));
  SHOW(ncmpi_end_indep_data(file));
  SHOW(ncmpi_end_indep_data(file));
  SHOW(ncmpi_put_vara_int(file, fixed, start1, count1, large));
  SHOW(ncmpi_fill_var_rec(file, fixed, 0));
  SHOW(ncmpi_fill_var_rec(file, growing, 0));
  SHOW(ncmpi_close(file));
  MUST(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file));
  SHOW(ncmpi_put_vara_int_all(file, fixed, start1, count1, large));
  SHOW(ncmpi_iput_vara_int(file, fixed, start1, count1, large, &request));
  SHOW(ncmpi_close(file));
  SHOW(ncmpi_inq_nvars(file, &fixed));
  MPI_Finalize();
  return 0;
}
