/* Program whose ranks wait for each other between two flushes, for tests/python/test_idle.py: ranks
 * compute for different times, and the fast ones wait in MPI. It knows nothing of Tailrace.
 *
 *   write_idle FOLDER steps
 */

#include "parallel_patterns.h"

enum { ROWS = 1024, ROW = 1024, STEPS = 4 };

static void compute(double seconds) {
  const double end = MPI_Wtime() + seconds;
  volatile double sum = 0;
  while (MPI_Wtime() < end) {
    for (int i = 0; i < 1000; ++i) sum += i;
  }
}

/* Exchange a number with the last rank, which is slow. Each step waits in another call. */
static void exchange(int step) {
  const int slow = n_ranks - 1;
  int value = rank == slow ? 7 : 0;
  MPI_Request request = MPI_REQUEST_NULL;
  compute(rank == slow ? 0.3 : 0.001);
  switch (step % 4) {
    case 0: MPI_Bcast(&value, 1, MPI_INT, slow, MPI_COMM_WORLD); break;
    case 1: {
      const int mine = value;
      MPI_Allreduce(&mine, &value, 1, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
      break;
    }
    case 2:
      if (rank == slow) {
        for (int to = 0; to < slow; ++to) MPI_Send(&value, 1, MPI_INT, to, 3, MPI_COMM_WORLD);
      } else {
        MPI_Irecv(&value, 1, MPI_INT, slow, 3, MPI_COMM_WORLD, &request);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
      }
      break;
    default:
      if (rank == slow) {
        for (int to = 0; to < slow; ++to) MPI_Send(&value, 1, MPI_INT, to, 3, MPI_COMM_WORLD);
      } else {
        MPI_Recv(&value, 1, MPI_INT, slow, 3, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
      }
  }
  CHECK(value == 7);
}

static void steps(const char* path) {
  const hsize_t extents[2] = {ROWS, ROW};
  const hsize_t chunk[2] = {16, ROW};
  hid_t file = create_file(path);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  hid_t space = space_of(2, extents, NULL);
  DO(H5Pset_chunk(list, 2, chunk));
  for (int step = 0; step < STEPS; ++step) {
    char name[32];
    snprintf(name, sizeof(name), "step_%d", step);
    hid_t dataset = create(file, name, H5T_NATIVE_DOUBLE, space, list);
    const hsize_t from = first_row(ROWS, rank);
    write_rows(dataset, from, first_row(ROWS, rank + 1) - from, ROW, H5P_DEFAULT);
    DO(H5Dclose(dataset));
    DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
    exchange(step);
  }
  DO(H5Sclose(space));
  DO(H5Pclose(list));
  DO(H5Fclose(file));
}

static const Pattern patterns[] = {{"steps", steps}};

int main(int argc, char** argv) { return run_patterns(argc, argv, patterns, 1); }
