/* ncmpi_comp_reg: functions of this program (runs of equal bytes) compress a variable on write and
 * decompress it on read. Without the functions the file reports what is missing. */

#include "pnetcdf/tailrace_pnetcdf.h"
#include "show.h"

#include <string.h>

enum { ROWS = 64, COLUMNS = 128 };

/* Pairs of length and byte; the argument is the longest run. */
static size_t pack_runs(void* input, size_t in_size, void* output, size_t out_size,
                        comp_args_t* args) {
  const unsigned char* in = input;
  unsigned char* out = output;
  const size_t longest = *(const size_t*)args->user_args;
  size_t n = 0;
  if (args->chunk_args->orig_size != in_size) return 0;
  for (size_t i = 0; i < in_size;) {
    size_t run = 1;
    while (i + run < in_size && run < longest && in[i + run] == in[i]) ++run;
    if (n + 2 > out_size) return 0;
    out[n++] = (unsigned char)run;
    out[n++] = in[i];
    i += run;
  }
  return n;
}

static size_t unpack_runs(void* input, size_t in_size, void* output, size_t out_size,
                          comp_args_t* args) {
  const unsigned char* in = input;
  unsigned char* out = output;
  size_t n = 0;
  (void)args;
  for (size_t i = 0; i + 1 < in_size; i += 2) {
    if (in[i] > out_size - n) return 0;
    memset(out + n, in[i + 1], in[i]);
    n += in[i];
  }
  return n;
}

int main(int argc, char** argv) {
  start(&argc, &argv);
  int file, dims[2], variable;
  size_t longest = 255;
  const comp_args_t args = {&longest, sizeof(longest), NULL};
  static int values[ROWS * COLUMNS], back[ROWS * COLUMNS];
  for (int i = 0; i < ROWS * COLUMNS; ++i) values[i] = 0x01010101 * (i / 500 + rank);
  MUST(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER, MPI_INFO_NULL, &file));
  MUST(ncmpi_def_dim(file, "y", (MPI_Offset)ROWS * n_ranks, &dims[0]));
  MUST(ncmpi_def_dim(file, "x", COLUMNS, &dims[1]));
  MUST(ncmpi_def_var(file, "runs", NC_INT, 2, dims, &variable));
  MUST(ncmpi_comp_reg(file, variable, pack_runs, unpack_runs, &args, 8192, 0));
  SHOW(ncmpi_comp_reg(file, variable, NULL, unpack_runs, &args, 0, 0));
  SHOW(ncmpi_comp_reg(file, 44, pack_runs, unpack_runs, &args, 0, 0));
  MUST(ncmpi_enddef(file));
  const MPI_Offset at[2] = {(MPI_Offset)ROWS * rank, 0}, count[2] = {ROWS, COLUMNS};
  MUST(ncmpi_put_vara_int_all(file, variable, at, count, values));
  MUST(ncmpi_close(file));

  MUST(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file));
  const int without = ncmpi_get_vara_int_all(file, variable, at, count, back);
  SHOW_NUMBER(worst(-(without == NC_NOERR)));
  MUST(ncmpi_close(file));
  MUST(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file));
  MUST(ncmpi_comp_reg(file, variable, pack_runs, unpack_runs, &args, 0, 0));
  MUST(ncmpi_get_vara_int_all(file, variable, at, count, back));
  SHOW_NUMBER(worst(-(memcmp(values, back, sizeof(values)) != 0)));
  MUST(ncmpi_close(file));
  MPI_Finalize();
  return 0;
}
