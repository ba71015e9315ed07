/* A program whose files cannot grow after its first sync: RLIMIT_FSIZE, as `ulimit -f` sets it. The
 * second sync fails on every rank, and SIGXFSZ kills no process.
 *
 *   limited_size FILE
 */

#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define CHECK(call)                                                  \
  do {                                                               \
    const int status = (call);                                       \
    if (status != NC_NOERR) {                                        \
      fprintf(stderr, "%d: %s\n", __LINE__, ncmpi_strerror(status)); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                  \
    }                                                                \
  } while (0)

enum { WIDTH = 20000 };

int main(int argc, char** argv) {
  static int values[WIDTH];
  int file, dims[2], variable, rank, n_ranks;
  if (argc != 2) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  CHECK(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER, MPI_INFO_NULL, &file));
  CHECK(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(file, "x", (MPI_Offset)WIDTH * n_ranks, &dims[1]));
  CHECK(ncmpi_def_var(file, "u", NC_INT, 2, dims, &variable));
  CHECK(ncmpi_enddef(file));
  for (int i = 0; i < WIDTH; ++i) values[i] = WIDTH * rank + i;
  MPI_Offset start[2] = {0, (MPI_Offset)WIDTH * rank}, count[2] = {1, WIDTH};
  CHECK(ncmpi_put_vara_int_all(file, variable, start, count, values));
  CHECK(ncmpi_sync(file));
  struct stat facts;
  if (stat(argv[1], &facts) != 0) return 3;
  MPI_Barrier(MPI_COMM_WORLD);
  const struct rlimit limit = {(rlim_t)facts.st_size + 4096, (rlim_t)facts.st_size + 4096};
  setrlimit(RLIMIT_FSIZE, &limit);
  start[0] = 1;
  CHECK(ncmpi_put_vara_int_all(file, variable, start, count, values));
  fprintf(stderr, "sync: %s\n", ncmpi_strerror(ncmpi_sync(file)));
  const int closed = ncmpi_close(file);
  MPI_Finalize();
  return closed == NC_NOERR ? 4 : 0;
}
