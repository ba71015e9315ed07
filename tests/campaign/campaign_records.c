/* Counterpart of campaign_writer.cpp on the PnetCDF API. It writes a variable that grows by
 * records, and a variable of fixed size that every step overwrites.
 *
 *   campaign_records FILE STEPS FIRST
 *
 * Variables are a(time, x) of floats and b(x) of ints, with x of length 256. Element i of a in
 * record s equals that of campaign_writer for f = 0, and element i of b is s + i. A FIRST above 0
 * opens an existing file. A step is committed when ncmpi_sync has returned. */

#define _GNU_SOURCE
#include <mpi.h>
#include <pnetcdf.h>

#include "mark.h"

enum { WIDTH = 256 };

static int try_run(char** words, int rank, int n_ranks) {
  int code, file, dims[2], a, b;
  const int n_steps = atoi(words[2]), first = atoi(words[3]);
#define TRY(call) \
  if ((code = (call)) != NC_NOERR) return code
  if (first > 0) {
    TRY(ncmpi_open(MPI_COMM_WORLD, words[1], NC_WRITE, MPI_INFO_NULL, &file));
    TRY(ncmpi_inq_varid(file, "a", &a));
    TRY(ncmpi_inq_varid(file, "b", &b));
  } else {
    TRY(ncmpi_create(MPI_COMM_WORLD, words[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
    TRY(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
    TRY(ncmpi_def_dim(file, "x", WIDTH, &dims[1]));
    TRY(ncmpi_def_var(file, "a", NC_FLOAT, 2, dims, &a));
    TRY(ncmpi_def_var(file, "b", NC_INT, 1, dims + 1, &b));
    TRY(ncmpi_enddef(file));
  }
  const int from = WIDTH * rank / n_ranks, n = WIDTH * (rank + 1) / n_ranks - from;
  for (int step = first; step < n_steps; ++step) {
    float values[WIDTH];
    int numbers[WIDTH];
    for (int i = 0; i < n; ++i) {
      const uint64_t key = (uint64_t)(from + i) + 1000003 * (uint64_t)step;
      values[i] = (float)((uint32_t)(key * 2654435761U) >> 16);
      numbers[i] = step + from + i;
    }
    const MPI_Offset start[2] = {step, from}, count[2] = {1, n};
    TRY(ncmpi_put_vara_float_all(file, a, start, count, values));
    TRY(ncmpi_put_vara_int_all(file, b, start + 1, count + 1, numbers));
    TRY(ncmpi_sync(file));
    campaign_note((uint64_t)step + 1);
  }
  return ncmpi_close(file);
}

int main(int n_words, char** words) {
  MPI_Init(&n_words, &words);
  int rank, n_ranks;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  const int code = n_words == 4 ? try_run(words, rank, n_ranks) : 1;
  if (code != NC_NOERR) fprintf(stderr, "campaign error: %s\n", ncmpi_strerror(code));
  MPI_Finalize();
  return code != NC_NOERR;
}
