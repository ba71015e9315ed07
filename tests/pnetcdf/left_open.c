/* Programs that forget ncmpi_close: two files over all ranks and one over each rank alone.
 *
 *   left_open PREFIX finalize     No rank closes any file.
 *   left_open PREFIX some         Only rank 0 closes the first file.
 *   left_open PREFIX limited      Files cannot be closed either, because they must not grow.
 *   left_open PREFIX exit         MPI_Finalize is not called either; the first file was synced.
 */

#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#define CHECK(call)                                                  \
  do {                                                               \
    const int status = (call);                                       \
    if (status != NC_NOERR) {                                        \
      fprintf(stderr, "%d: %s\n", __LINE__, ncmpi_strerror(status)); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                  \
    }                                                                \
  } while (0)

static int make(MPI_Comm comm, const char* prefix, const char* name, int leave_define_mode) {
  char path[1024];
  int file, dimension, variable, rank, n_ranks;
  MPI_Comm_rank(comm, &rank);
  MPI_Comm_size(comm, &n_ranks);
  snprintf(path, sizeof path, "%s%s.nc", prefix, name);
  CHECK(ncmpi_create(comm, path, NC_CLOBBER, MPI_INFO_NULL, &file));
  CHECK(ncmpi_def_dim(file, "x", 10 * n_ranks, &dimension));
  CHECK(ncmpi_def_var(file, "u", NC_INT, 1, &dimension, &variable));
  if (!leave_define_mode) return file;
  CHECK(ncmpi_enddef(file));
  const MPI_Offset start = 10 * rank, count = 10;
  int values[10];
  for (int i = 0; i < 10; ++i) values[i] = 10 * rank + i;
  CHECK(ncmpi_put_vara_int_all(file, variable, &start, &count, values));
  return file;
}

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  MPI_Init(&argc, &argv);
  int rank;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  char own[32];
  snprintf(own, sizeof own, "own%d", rank);
  /* The ranks' own files are opened between the common ones. */
  const int first = make(MPI_COMM_WORLD, argv[1], "first", 1);
  make(MPI_COMM_SELF, argv[1], own, 1);
  make(MPI_COMM_WORLD, argv[1], "second", 1);
  make(MPI_COMM_WORLD, argv[1], "defining", 0);
  if (strcmp(argv[2], "exit") == 0) {
    CHECK(ncmpi_sync(first));
    exit(0);
  }
  if (strcmp(argv[2], "limited") == 0) {
    const struct rlimit limit = {1024, 1024};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  if (strcmp(argv[2], "some") == 0 && rank == 0) CHECK(ncmpi_close(first));
  MPI_Finalize();
  return 0;
}
