/* Every call that libtailrace_idle.so serves, on two ranks: rank 1 arrives late, and rank 0 waits.
 * The program checks that the wait is marked and that the call does what it does without the
 * library. With an argument it runs without the library, and checks only the results.
 */

#include <mpi.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "watch_waits.h"

static int rank;
static int n_failed;
static MPI_Comm ring;
static MPI_Win window;
static int* of_window;
static const int ones[2] = {1, 1};
static const int places[2] = {0, 1};
static const int bytes[2] = {0, sizeof(int)};
static MPI_Datatype types[2];
static int two[2];

#define WORLD MPI_COMM_WORLD
#define IGNORE MPI_STATUS_IGNORE

/* Each case returns whether its results are right. Values sent are 10 + rank. */
static int mine;
static int got;

static void send_late(void) { MPI_Send(&mine, 1, MPI_INT, 0, 5, WORLD); }
static int both_in_two(void) { return two[0] == 10 && two[1] == 11; }

static int wait_one(void) {
  MPI_Request request;
  if (rank == 1) return send_late(), 1;
  MPI_Irecv(&got, 1, MPI_INT, 1, 5, WORLD, &request);
  MPI_Status status;
  MPI_Wait(&request, &status);
  return got == 11 && status.MPI_SOURCE == 1 && status.MPI_TAG == 5;
}
static int wait_all(void) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  if (rank == 1) return send_late(), 1;
  MPI_Irecv(&got, 1, MPI_INT, 1, 5, WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  return got == 11;
}
static int wait_any(void) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int index = -1;
  if (rank == 1) return send_late(), 1;
  MPI_Irecv(&got, 1, MPI_INT, 1, 5, WORLD, &requests[1]);
  MPI_Waitany(2, requests, &index, IGNORE);
  return got == 11 && index == 1;
}
static int wait_some(void) {
  MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
  int indices[2];
  int n = 0;
  if (rank == 1) return send_late(), 1;
  MPI_Irecv(&got, 1, MPI_INT, 1, 5, WORLD, &requests[1]);
  MPI_Waitsome(2, requests, &n, indices, MPI_STATUSES_IGNORE);
  return got == 11 && n == 1 && indices[0] == 1;
}
static int probe(void) {
  MPI_Status status;
  if (rank == 1) return send_late(), 1;
  MPI_Probe(1, 5, WORLD, &status);
  PMPI_Recv(&got, 1, MPI_INT, 1, 5, WORLD, IGNORE);
  return got == 11 && status.MPI_SOURCE == 1;
}
static int matched(void) {
  MPI_Message message;
  if (rank == 1) return send_late(), 1;
  MPI_Mprobe(1, 5, WORLD, &message, IGNORE);
  MPI_Mrecv(&got, 1, MPI_INT, &message, IGNORE);
  return got == 11;
}
static int receive(void) {
  if (rank == 1) return send_late(), 1;
  return MPI_Recv(&got, 1, MPI_INT, 1, 5, WORLD, IGNORE) == MPI_SUCCESS && got == 11;
}
static int send_to_late(void) {
  static char large[1 << 20];
  static char there[1 << 20];
  memset(large, 7, sizeof large);
  if (rank == 0) return MPI_Send(large, sizeof large, MPI_BYTE, 1, 6, WORLD) == MPI_SUCCESS;
  MPI_Recv(there, sizeof there, MPI_BYTE, 0, 6, WORLD, IGNORE);
  return memcmp(there, "\7\7\7", 3) == 0 && there[sizeof there - 1] == 7;
}
static int synchronous(void) {
  if (rank == 0) return MPI_Ssend(&mine, 1, MPI_INT, 1, 6, WORLD) == MPI_SUCCESS;
  MPI_Recv(&got, 1, MPI_INT, 0, 6, WORLD, IGNORE);
  return got == 10;
}
static int send_and_receive(void) {
  MPI_Sendrecv(&mine, 1, MPI_INT, 1 - rank, 7, &got, 1, MPI_INT, 1 - rank, 7, WORLD, IGNORE);
  return got == 11 - rank;
}
static int replace(void) {
  got = mine;
  MPI_Sendrecv_replace(&got, 1, MPI_INT, 1 - rank, 7, 1 - rank, 7, WORLD, IGNORE);
  return got == 11 - rank;
}
static int barrier(void) { return MPI_Barrier(WORLD) == MPI_SUCCESS; }
static int bcast(void) {
  got = mine;
  MPI_Bcast(&got, 1, MPI_INT, 1, WORLD);
  return got == 11;
}
static int reduce(void) {
  MPI_Reduce(&mine, &got, 1, MPI_INT, MPI_SUM, 0, WORLD);
  return rank == 1 || got == 21;
}
static int allreduce(void) {
  MPI_Allreduce(&mine, &got, 1, MPI_INT, MPI_SUM, WORLD);
  return got == 21;
}
static int reduce_scatter(void) {
  const int values[2] = {mine, 2 * mine};
  MPI_Reduce_scatter(values, &got, ones, MPI_INT, MPI_SUM, WORLD);
  return got == 21 * (rank + 1);
}
static int reduce_scatter_block(void) {
  const int values[2] = {mine, 2 * mine};
  MPI_Reduce_scatter_block(values, &got, 1, MPI_INT, MPI_SUM, WORLD);
  return got == 21 * (rank + 1);
}
/* A scan in which rank 0 would wait for rank 1 has the ranks in the other order. */
static MPI_Comm turned;
static int scan(void) {
  MPI_Scan(&mine, &got, 1, MPI_INT, MPI_SUM, turned);
  return got == (rank == 1 ? 11 : 21);
}
static int exscan(void) {
  got = 0;
  MPI_Exscan(&mine, &got, 1, MPI_INT, MPI_SUM, turned);
  return rank == 1 || got == 11;
}
static int gather(void) {
  MPI_Gather(&mine, 1, MPI_INT, two, 1, MPI_INT, 0, WORLD);
  return rank == 1 || both_in_two();
}
static int gatherv(void) {
  MPI_Gatherv(&mine, 1, MPI_INT, two, ones, places, MPI_INT, 0, WORLD);
  return rank == 1 || both_in_two();
}
static int scatter(void) {
  const int values[2] = {20, 21};
  MPI_Scatter(values, 1, MPI_INT, &got, 1, MPI_INT, 1, WORLD);
  return got == 20 + rank;
}
static int scatterv(void) {
  const int values[2] = {20, 21};
  MPI_Scatterv(values, ones, places, MPI_INT, &got, 1, MPI_INT, 1, WORLD);
  return got == 20 + rank;
}
static int allgather(void) {
  MPI_Allgather(&mine, 1, MPI_INT, two, 1, MPI_INT, WORLD);
  return both_in_two();
}
static int allgatherv(void) {
  MPI_Allgatherv(&mine, 1, MPI_INT, two, ones, places, MPI_INT, WORLD);
  return both_in_two();
}
static int alltoall(void) {
  const int values[2] = {mine, mine};
  MPI_Alltoall(values, 1, MPI_INT, two, 1, MPI_INT, WORLD);
  return both_in_two();
}
static int alltoallv(void) {
  const int values[2] = {mine, mine};
  MPI_Alltoallv(values, ones, places, MPI_INT, two, ones, places, MPI_INT, WORLD);
  return both_in_two();
}
static int alltoallw(void) {
  const int values[2] = {mine, mine};
  MPI_Alltoallw(values, ones, bytes, types, two, ones, bytes, types, WORLD);
  return both_in_two();
}
/* The neighbours of the ring on both sides are the other rank. */
static int from_neighbours(void) { return two[0] == 11 - rank && two[1] == 11 - rank; }
static int neighbor_allgather(void) {
  MPI_Neighbor_allgather(&mine, 1, MPI_INT, two, 1, MPI_INT, ring);
  return from_neighbours();
}
static int neighbor_allgatherv(void) {
  MPI_Neighbor_allgatherv(&mine, 1, MPI_INT, two, ones, places, MPI_INT, ring);
  return from_neighbours();
}
static int neighbor_alltoall(void) {
  const int values[2] = {mine, mine};
  MPI_Neighbor_alltoall(values, 1, MPI_INT, two, 1, MPI_INT, ring);
  return from_neighbours();
}
static int neighbor_alltoallv(void) {
  const int values[2] = {mine, mine};
  MPI_Neighbor_alltoallv(values, ones, places, MPI_INT, two, ones, places, MPI_INT, ring);
  return from_neighbours();
}
static int neighbor_alltoallw(void) {
  const int values[2] = {mine, mine};
  const MPI_Aint apart[2] = {0, sizeof(int)};
  MPI_Neighbor_alltoallw(values, ones, apart, types, two, ones, apart, types, ring);
  return from_neighbours();
}
static int fence(void) {
  PMPI_Win_fence(0, window);
  if (rank == 1) arrive_late();
  if (rank == 1) MPI_Put(&mine, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
  MPI_Win_fence(0, window);
  return rank == 1 || *of_window == 11;
}
/* Rank 1 exposes its window late; rank 0 starts and completes an access. */
static int complete(void) {
  MPI_Group world;
  MPI_Group other;
  const int there = 1 - rank;
  MPI_Comm_group(WORLD, &world);
  MPI_Group_incl(world, 1, &there, &other);
  if (rank == 0) {
    MPI_Win_start(other, 0, window);
    MPI_Put(&mine, 1, MPI_INT, 1, 0, 1, MPI_INT, window);
    MPI_Win_complete(window);
  } else {
    MPI_Win_post(other, 0, window);
    MPI_Win_wait(window);
  }
  MPI_Group_free(&other);
  MPI_Group_free(&world);
  return rank == 0 || *of_window == 10;
}
/* Rank 1 completes its access late; rank 0 waits for that. */
static int wait_for_window(void) {
  MPI_Group world;
  MPI_Group other;
  const int there = 1 - rank;
  MPI_Comm_group(WORLD, &world);
  MPI_Group_incl(world, 1, &there, &other);
  if (rank == 1) {
    MPI_Win_start(other, 0, window);
    MPI_Put(&mine, 1, MPI_INT, 0, 0, 1, MPI_INT, window);
    MPI_Win_complete(window);
  } else {
    MPI_Win_post(other, 0, window);
    MPI_Win_wait(window);
  }
  MPI_Group_free(&other);
  MPI_Group_free(&world);
  return rank == 1 || *of_window == 11;
}

#define CASE(function) \
  { #function, function, 0 }
/* Calls that MPI may end on rank 0 before rank 1 arrives are not checked for their marks. */
#define BUFFERED(function) \
  { #function, function, 1 }
static const struct {
  const char* name;
  int (*run)(void);
  int may_not_wait;
} cases[] = {CASE(wait_one),
             CASE(wait_all),
             CASE(wait_any),
             CASE(wait_some),
             CASE(probe),
             CASE(matched),
             CASE(receive),
             CASE(send_to_late),
             CASE(synchronous),
             CASE(send_and_receive),
             CASE(replace),
             CASE(barrier),
             CASE(bcast),
             CASE(reduce),
             CASE(allreduce),
             CASE(reduce_scatter),
             CASE(reduce_scatter_block),
             CASE(scan),
             CASE(exscan),
             CASE(gather),
             CASE(gatherv),
             CASE(scatter),
             CASE(scatterv),
             CASE(allgather),
             CASE(allgatherv),
             CASE(alltoall),
             CASE(alltoallv),
             CASE(alltoallw),
             CASE(neighbor_allgather),
             CASE(neighbor_allgatherv),
             CASE(neighbor_alltoall),
             CASE(neighbor_alltoallv),
             CASE(neighbor_alltoallw),
             CASE(fence),
             BUFFERED(complete),
             CASE(wait_for_window)};

static void check(const char* name, const char* what, int right) {
  if (right) return;
  fprintf(stderr, "rank %d: %s: %s\n", rank, name, what);
  ++n_failed;
}

static void* receive_in_thread(void* data) {
  MPI_Recv(data, 1, MPI_INT, 1, 8, WORLD, IGNORE);
  return NULL;
}

/* A wait of another thread is not a wait of the program. */
static void check_other_thread(int is_loaded) {
  PMPI_Barrier(WORLD);
  if (rank == 1) {
    arrive_late();
    PMPI_Send(&mine, 1, MPI_INT, 0, 8, WORLD);
    return;
  }
  pthread_t thread;
  watch_begin();
  pthread_create(&thread, NULL, receive_in_thread, &got);
  pthread_join(thread, NULL);
  check("another thread", "its value", got == 11);
  check("another thread", "must not be marked", watch_end() == (is_loaded ? 0 : -1));
}

int main(int argc, char** argv) {
  int provided = 0;
  int n_ranks = 0;
  const int is_loaded = argc == 1;
  MPI_Init_thread(&argc, &argv, MPI_THREAD_MULTIPLE, &provided);
  MPI_Comm_rank(WORLD, &rank);
  MPI_Comm_size(WORLD, &n_ranks);
  if (n_ranks != 2) return fprintf(stderr, "needs two ranks\n"), 1;
  mine = 10 + rank;
  types[0] = types[1] = MPI_INT;
  const int length = 2;
  const int periodic = 1;
  MPI_Cart_create(WORLD, 1, &length, &periodic, 0, &ring);
  MPI_Comm_split(WORLD, 0, 1 - rank, &turned);
  MPI_Win_allocate(sizeof(int), sizeof(int), MPI_INFO_NULL, WORLD, &of_window, &window);
  for (size_t i = 0; i < sizeof cases / sizeof *cases; ++i) {
    PMPI_Barrier(WORLD);
    got = two[0] = two[1] = -1;
    if (rank == 0) watch_begin();
    if (rank == 1) arrive_late();
    check(cases[i].name, "wrong result", cases[i].run());
    if (rank != 0) continue;
    const int seen = watch_end();
    const int is_right =
        !is_loaded ? seen == -1 : seen == 1 || (seen == 0 && cases[i].may_not_wait);
    check(cases[i].name, seen == -1 ? "the library" : seen == 0 ? "no mark" : "mark", is_right);
  }
  if (provided == MPI_THREAD_MULTIPLE) check_other_thread(is_loaded);
  MPI_Win_free(&window);
  MPI_Comm_free(&turned);
  MPI_Comm_free(&ring);
  int n_failed_in_all = 0;
  MPI_Allreduce(&n_failed, &n_failed_in_all, 1, MPI_INT, MPI_SUM, WORLD);
  if (rank == 0) {
    printf("%zu calls, threads %s, %d failed\n", sizeof cases / sizeof *cases,
           provided == MPI_THREAD_MULTIPLE ? "yes" : "no", n_failed_in_all);
  }
  MPI_Finalize();
  return n_failed_in_all != 0;
}
