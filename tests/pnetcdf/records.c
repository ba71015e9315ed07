/* Record variables that grow in both modes, ranks without data, pending requests, redefinition in
 * between, and what other ranks see. */

#include "show.h"

enum { WIDTH = 8 };

static MPI_Offset records(int file) {
  int dim = -1;
  MPI_Offset n = -1;
  MUST(ncmpi_inq_unlimdim(file, &dim));
  MUST(ncmpi_inq_dimlen(file, dim, &n));
  return n;
}

static void show_variable(int file, int variable, const char* label) {
  const MPI_Offset n = records(file);
  MPI_Offset start[2] = {0, 0}, count[2] = {n, (MPI_Offset)WIDTH * n_ranks};
  double* all = calloc((size_t)(n * count[1]), sizeof(double));
  MUST(ncmpi_get_vara_double_all(file, variable, start, count, all));
  SHOW_VALUES(label, all, n * count[1]);
  free(all);
}

int main(int argc, char** argv) {
  start(&argc, &argv);
  int file, dims[2], a, b, time_id, late, request[4], status[4];
  MUST(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER, MPI_INFO_NULL, &file));
  MUST(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
  MUST(ncmpi_def_dim(file, "x", (MPI_Offset)WIDTH * n_ranks, &dims[1]));
  MUST(ncmpi_def_var(file, "a", NC_FLOAT, 2, dims, &a));
  MUST(ncmpi_def_var(file, "b", NC_INT, 2, dims, &b));
  MUST(ncmpi_def_var(file, "time", NC_DOUBLE, 1, dims, &time_id));
  MUST(ncmpi_def_var_fill(file, b, 0, NULL));
  MUST(ncmpi_enddef(file));
  SHOW_NUMBER(records(file));

  float row[WIDTH];
  int numbers[2 * WIDTH];
  MPI_Offset start_at[2] = {0, (MPI_Offset)WIDTH * rank}, one_row[2] = {1, WIDTH};
  for (int step = 0; step < 5; ++step) {
    for (int i = 0; i < WIDTH; ++i) row[i] = (float)(step * 100 + rank * 10 + i);
    start_at[0] = step;
    MUST(ncmpi_put_vara_float_all(file, a, start_at, one_row, row));
    const MPI_Offset at = step;
    const double when = 0.5 * step;
    const MPI_Offset one = rank == 0 ? 1 : 0; /* other ranks put nothing */
    MUST(ncmpi_put_vara_double_all(file, time_id, &at, &one, &when));
  }
  SHOW_NUMBER(records(file));

  /* One rank alone extends the record dimension, and the others learn the new length. */
  MUST(ncmpi_begin_indep_data(file));
  if (rank == n_ranks - 1) {
    start_at[0] = 6;
    MUST(ncmpi_put_vara_float(file, a, start_at, one_row, row));
    SHOW_NUMBER(rank);
  }
  MUST(ncmpi_end_indep_data(file));
  SHOW_NUMBER(records(file));
  MUST(ncmpi_fill_var_rec(file, b, 6));
  for (int i = 0; i < 6; ++i) MUST(ncmpi_fill_var_rec(file, b, i));
  show_variable(file, b, "b filled");

  /* Requests: two rows of b, a row of a, all in one wait call. */
  for (int i = 0; i < 2 * WIDTH; ++i) numbers[i] = 1000 * (rank + 1) + i;
  MPI_Offset two_rows[2] = {2, WIDTH};
  start_at[0] = 2;
  MUST(ncmpi_iput_vara_int(file, b, start_at, two_rows, numbers, &request[0]));
  start_at[0] = 5;
  MUST(ncmpi_iput_vara_float(file, a, start_at, one_row, row, &request[1]));
  MUST(ncmpi_buffer_attach(file, 4096));
  start_at[0] = 6;
  MUST(ncmpi_bput_vara_int(file, b, start_at, one_row, numbers, &request[2]));
  numbers[0] = numbers[1] = -1; /* bput has a copy; iput's buffer must not change */
  numbers[0] = 1000 * (rank + 1), numbers[1] = 1000 * (rank + 1) + 1;
  MPI_Offset used = -1;
  MUST(ncmpi_inq_buffer_usage(file, &used));
  SHOW_NUMBER(used);
  int pending = -1;
  MUST(ncmpi_inq_nreqs(file, &pending));
  SHOW_NUMBER(pending);
  SHOW(ncmpi_buffer_detach(file));
  MUST(ncmpi_wait_all(file, 3, request, status));
  for (int i = 0; i < 3; ++i) SHOW_NUMBER(status[i]);
  SHOW_NUMBER(request[0]);
  MUST(ncmpi_buffer_detach(file));
  show_variable(file, b, "b after requests");

  start_at[0] = 0;
  MUST(ncmpi_iput_vara_int(file, b, start_at, one_row, numbers, &request[0]));
  MUST(ncmpi_cancel(file, 1, request, status));
  SHOW(ncmpi_wait_all(file, NC_REQ_ALL, NULL, NULL));
  show_variable(file, b, "b after cancel");
  int back[WIDTH];
  float row_back[WIDTH];
  MUST(ncmpi_iget_vara_int(file, b, start_at, one_row, back, &request[0]));
  MUST(ncmpi_iget_vara_float(file, a, start_at, one_row, row_back, &request[1]));
  if (rank == 0) {
    MUST(ncmpi_wait_all(file, 2, request, status));
  } else { /* in another order, and with a null request */
    int turned[3] = {request[1], NC_REQ_NULL, request[0]};
    MUST(ncmpi_wait_all(file, 3, turned, status));
  }
  SHOW_VALUES("iget b", back, WIDTH);
  SHOW_VALUES("iget a", row_back, WIDTH);
  int unknown = 4242;
  SHOW(ncmpi_wait_all(file, 1, &unknown, status));

  /* If the number of ids equals the number of pending requests, all of them complete, whatever the
   * ids. For a put that returns NC_ERANGE the Fortran functions return no id. */
  const double large[WIDTH] = {1e30, 3};
  int none = NC_REQ_NULL;
  start_at[0] = 1;
  SHOW(ncmpi_iput_vara_double(file, b, start_at, one_row, large, &request[0]));
  SHOW(ncmpi_wait_all(file, 1, &none, status));
  SHOW_NUMBER(status[0]);
  show_variable(file, b, "b by a wait without its number");
  MUST(ncmpi_iput_vara_int(file, b, start_at, one_row, numbers, &request[0]));
  MUST(ncmpi_iget_vara_int(file, b, start_at, one_row, back, &request[1]));
  int others[2] = {NC_REQ_NULL, 4243};
  SHOW(ncmpi_wait_all(file, 2, others, status)); /* not for put and get with statuses */
  SHOW(ncmpi_wait_all(file, 2, others, NULL));
  MUST(ncmpi_inq_nreqs(file, &pending));
  SHOW_NUMBER(pending);

  /* All ranks clear a variable, then each writes its part: later values win. */
  for (int i = 0; i < n_ranks; ++i) {
    double* zeros = calloc((size_t)(7 * WIDTH * n_ranks), sizeof(double));
    MPI_Offset all_at[2] = {0, 0}, all_of_it[2] = {7, (MPI_Offset)WIDTH * n_ranks};
    MUST(ncmpi_put_vara_double_all(file, a, all_at, all_of_it, zeros));
    start_at[0] = i;
    MUST(ncmpi_put_vara_float_all(file, a, start_at, one_row, row));
    free(zeros);
    show_variable(file, a, "a cleared and written");
  }

  /* Define mode again: a new variable joins variables that have records. */
  MUST(ncmpi_redef(file));
  MUST(ncmpi_def_var(file, "late", NC_SHORT, 2, dims, &late));
  MUST(ncmpi_def_var_fill(file, late, 0, NULL));
  MUST(ncmpi_put_att_text(file, late, "note", 4, "late"));
  MUST(ncmpi_enddef(file));
  short few[WIDTH];
  for (int i = 0; i < WIDTH; ++i) few[i] = (short)(i - rank);
  start_at[0] = 3;
  MUST(ncmpi_put_vara_short_all(file, late, start_at, one_row, few));
  for (int i = 0; i < 7; ++i) {
    if (i != 3) MUST(ncmpi_fill_var_rec(file, late, i));
  }
  show_variable(file, late, "late");
  MPI_Offset record_bytes = -1;
  MUST(ncmpi_inq_recsize(file, &record_bytes));
  SHOW_NUMBER(record_bytes);
  MUST(ncmpi_sync(file));
  MUST(ncmpi_close(file));

  MUST(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_WRITE, MPI_INFO_NULL, &file));
  SHOW_NUMBER(records(file));
  show_variable(file, b, "b opened");
  start_at[0] = 7;
  MUST(ncmpi_put_vara_int_all(file, b, start_at, one_row, numbers));
  SHOW_NUMBER(records(file));
  MPI_Offset start2[2] = {2, 0}, count2[2] = {2, (MPI_Offset)WIDTH * n_ranks};
  double* part = calloc((size_t)(count2[0] * count2[1]), sizeof(double));
  MUST(ncmpi_get_vara_double_all(file, a, start2, count2, part));
  SHOW_VALUES("a opened", part, count2[0] * count2[1]);
  free(part);
  MUST(ncmpi_close(file));
  MPI_Finalize();
  return 0;
}
