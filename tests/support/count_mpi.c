/* Library to preload: counts a program's collective MPI calls, its own and those of its libraries.
 *
 * MPI_Pcontrol(1) starts counting; MPI_Pcontrol(2) prints on rank 0 the calls since then, as
 * "MPI calls: 3 MPI_Allreduce 1 MPI_Bcast". A number is the maximum over all ranks. The MPI
 * library's calls inside itself are not counted.
 */

#include <mpi.h>
#include <stdio.h>
#include <string.h>

#define COUNTED(name, parameters, arguments) \
  int name parameters {                      \
    ++counts[of_##name];                     \
    return P##name arguments;                \
  }

#define CALLS(CALL)                                                                               \
  CALL(MPI_Barrier, (MPI_Comm c), (c))                                                            \
  CALL(MPI_Ibarrier, (MPI_Comm c, MPI_Request * r), (c, r))                                       \
  CALL(MPI_Bcast, (void* b, int n, MPI_Datatype t, int k, MPI_Comm c), (b, n, t, k, c))           \
  CALL(MPI_Ibcast, (void* b, int n, MPI_Datatype t, int k, MPI_Comm c, MPI_Request* r),           \
       (b, n, t, k, c, r))                                                                        \
  CALL(MPI_Allreduce, (const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),      \
       (a, b, n, t, o, c))                                                                        \
  CALL(MPI_Iallreduce,                                                                            \
       (const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request* r),     \
       (a, b, n, t, o, c, r))                                                                     \
  CALL(MPI_Reduce, (const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, int k, MPI_Comm c),  \
       (a, b, n, t, o, k, c))                                                                     \
  CALL(MPI_Exscan, (const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c),         \
       (a, b, n, t, o, c))                                                                        \
  CALL(MPI_Iexscan,                                                                               \
       (const void* a, void* b, int n, MPI_Datatype t, MPI_Op o, MPI_Comm c, MPI_Request* r),     \
       (a, b, n, t, o, c, r))                                                                     \
  CALL(MPI_Gather,                                                                                \
       (const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, int k, MPI_Comm c), \
       (a, n, t, b, m, u, k, c))                                                                  \
  CALL(MPI_Gatherv,                                                                               \
       (const void* a, int n, MPI_Datatype t, void* b, const int m[], const int d[],              \
        MPI_Datatype u, int k, MPI_Comm c),                                                       \
       (a, n, t, b, m, d, u, k, c))                                                               \
  CALL(MPI_Allgather,                                                                             \
       (const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, MPI_Comm c),        \
       (a, n, t, b, m, u, c))                                                                     \
  CALL(MPI_Iallgather,                                                                            \
       (const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, MPI_Comm c,         \
        MPI_Request* r),                                                                          \
       (a, n, t, b, m, u, c, r))                                                                  \
  CALL(MPI_Alltoall,                                                                              \
       (const void* a, int n, MPI_Datatype t, void* b, int m, MPI_Datatype u, MPI_Comm c),        \
       (a, n, t, b, m, u, c))                                                                     \
  CALL(MPI_Comm_dup, (MPI_Comm c, MPI_Comm * d), (c, d))                                          \
  CALL(MPI_Comm_split, (MPI_Comm c, int color, int key, MPI_Comm* d), (c, color, key, d))         \
  CALL(MPI_Comm_split_type, (MPI_Comm c, int type, int key, MPI_Info i, MPI_Comm* d),             \
       (c, type, key, i, d))                                                                      \
  CALL(MPI_Comm_free, (MPI_Comm * c), (c))                                                        \
  CALL(MPI_Win_allocate_shared, (MPI_Aint n, int u, MPI_Info i, MPI_Comm c, void* b, MPI_Win* w), \
       (n, u, i, c, b, w))                                                                        \
  CALL(MPI_Win_free, (MPI_Win * w), (w))                                                          \
  CALL(MPI_File_open, (MPI_Comm c, const char* p, int m, MPI_Info i, MPI_File* f),                \
       (c, p, m, i, f))                                                                           \
  CALL(MPI_File_close, (MPI_File * f), (f))                                                       \
  CALL(MPI_File_sync, (MPI_File f), (f))                                                          \
  CALL(MPI_File_set_size, (MPI_File f, MPI_Offset n), (f, n))                                     \
  CALL(MPI_File_set_view,                                                                         \
       (MPI_File f, MPI_Offset n, MPI_Datatype t, MPI_Datatype u, const char* r, MPI_Info i),     \
       (f, n, t, u, r, i))                                                                        \
  CALL(MPI_File_write_at_all,                                                                     \
       (MPI_File f, MPI_Offset o, const void* b, int n, MPI_Datatype t, MPI_Status* s),           \
       (f, o, b, n, t, s))                                                                        \
  CALL(MPI_File_read_at_all,                                                                      \
       (MPI_File f, MPI_Offset o, void* b, int n, MPI_Datatype t, MPI_Status* s),                 \
       (f, o, b, n, t, s))

#define NUMBER(name, parameters, arguments) of_##name,
enum { CALLS(NUMBER) n_calls };
#define NAME(name, parameters, arguments) #name,
static const char* const names[] = {CALLS(NAME)};

static int counts[n_calls];

CALLS(COUNTED)

int MPI_Pcontrol(const int level, ...) {
  if (level == 1) memset(counts, 0, sizeof counts);
  if (level != 2) return MPI_SUCCESS;
  int most[n_calls];
  int rank = 0;
  PMPI_Allreduce(counts, most, n_calls, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  if (rank != 0) return MPI_SUCCESS;
  printf("MPI calls:");
  for (int i = 0; i < n_calls; ++i) {
    if (most[i] > 0) printf(" %d %s", most[i], names[i]);
  }
  printf("\n");
  fflush(stdout);
  return MPI_SUCCESS;
}
