/* Program that computes while its flushed and closed data are written (mode=async), for
 * tests/python/test_hdf5_programs.py. It runs without Tailrace, too: checks that hold only for
 * writes in the background need `BESIDE=1`.
 *
 *   write_beside FOLDER NAME...
 */

#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "parallel_patterns.h"

enum { ROWS = 240, ROW = 500 };

static int beside(void) { return getenv("BESIDE") != NULL; }
static hsize_t mine(void) { return first_row(ROWS, rank); }
static hsize_t n_mine(void) { return first_row(ROWS, rank + 1) - mine(); }

static hid_t doubles(hid_t file, const char* name, hid_t list) {
  const hsize_t extents[2] = {ROWS, ROW};
  hid_t space = space_of(2, extents, NULL);
  hid_t dataset = create(file, name, H5T_NATIVE_DOUBLE, space, list);
  DO(H5Sclose(space));
  return dataset;
}

/* Write `n` rows from `first` on, all of one value. */
static void write_value(hid_t dataset, hsize_t first, hsize_t n, double value, hid_t list) {
  double* values = malloc((n * ROW + 1) * sizeof(double));
  hid_t memory;
  hid_t space = rows_of(dataset, first, n, &memory);
  for (hsize_t i = 0; i < n * ROW; ++i) values[i] = value;
  DO(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, list, values));
  DO(H5Sclose(space));
  DO(H5Sclose(memory));
  free(values);
}

/* Check that the first `n_other` rows have the value `other`, and the rest that of write_rows(). */
static void check_rows(hid_t dataset, hsize_t n_other, double other, hid_t list) {
  double* values = malloc(sizeof(double) * ROWS * ROW);
  DO(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, list, values));
  for (hsize_t i = 0; i < (hsize_t)ROWS * ROW; ++i) {
    CHECK(values[i] == (i < n_other * ROW ? other : value_at(i)));
  }
  free(values);
}

static herr_t read_quietly(hid_t dataset) {
  double* values = malloc(sizeof(double) * ROWS * ROW);
  herr_t done = -1;
  H5E_BEGIN_TRY {
    done = H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  }
  H5E_END_TRY
  free(values);
  return done;
}

/* Writes during a flush are part of the next flush; reads return them already. */
static void flushed(const char* path) {
  hid_t file = create_file(path);
  hid_t collective = collective_list();
  hid_t one = doubles(file, "one", H5P_DEFAULT);
  write_rows(one, mine(), n_mine(), ROW, H5P_DEFAULT);
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  if (beside()) CHECK(access(path, F_OK) != 0); /* The file is not committed yet. */
  /* An independent read cannot get other ranks' values now, and fails. */
  if (beside() && n_ranks > 1) CHECK(read_quietly(one) < 0);
  if (rank == n_ranks - 1) write_value(one, 0, 2, -1, H5P_DEFAULT);
  hid_t two = doubles(file, "two", H5P_DEFAULT);
  write_attribute(two, "later", 7);
  write_rows(two, mine(), n_mine(), ROW, H5P_DEFAULT);
  MPI_Barrier(MPI_COMM_WORLD);
  check_rows(one, 2, -1, collective);
  check_rows(two, 0, 0, collective);
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) write_value(one, 1, 3, -2, H5P_DEFAULT);
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL)); /* Nothing is left: this completes the flush before it. */
  CHECK(access(path, F_OK) == 0);
  if (beside()) DO(read_quietly(one));
  DO(H5Dclose(one));
  DO(H5Dclose(two));
  DO(H5Pclose(collective));
  DO(H5Fclose(file));
}

/* A dataset grows and shrinks while its earlier data are written; another one is deleted. */
static void changed(const char* path) {
  const hsize_t extents[2] = {60, ROW};
  const hsize_t most[2] = {H5S_UNLIMITED, ROW};
  const hsize_t chunk[2] = {16, ROW};
  hid_t file = create_file(path);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  hid_t space = space_of(2, extents, most);
  DO(H5Pset_chunk(list, 2, chunk));
  hid_t grows = create(file, "grows", H5T_NATIVE_DOUBLE, space, list);
  hid_t gone = doubles(file, "gone", H5P_DEFAULT);
  const hsize_t steps[4] = {60, 130, 100, 190};
  for (int step = 0; step < 4; ++step) {
    const hsize_t now[2] = {steps[step], ROW};
    DO(H5Dset_extent(grows, now));
    const hsize_t from = first_row(steps[step], rank);
    write_rows(grows, from, first_row(steps[step], rank + 1) - from, ROW, H5P_DEFAULT);
    if (step == 1) write_rows(gone, mine(), n_mine(), ROW, H5P_DEFAULT);
    DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
    if (step == 1) DO(H5Dclose(gone));
    if (step == 1) DO(H5Ldelete(file, "gone", H5P_DEFAULT));
  }
  hid_t copies = H5Gcreate2(file, "copies", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  DO(copies);
  DO(H5Ocopy(file, "grows", copies, "grows", H5P_DEFAULT, H5P_DEFAULT));
  DO(H5Gclose(copies));
  DO(H5Dclose(grows));
  DO(H5Sclose(space));
  DO(H5Pclose(list));
  DO(H5Fclose(file));
}

static void write_file(const char* path, double first_rows) {
  hid_t file = create_file(path);
  hid_t dataset = doubles(file, "values", H5P_DEFAULT);
  write_attribute(file, "number", 3);
  write_rows(dataset, mine(), n_mine(), ROW, H5P_DEFAULT);
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) write_value(dataset, 0, 1, first_rows, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  DO(H5Fclose(file));
}

/* Close files one after the other. Closing a file completes the one before; opening a file that was
 * closed completes it, too. MPI_Finalize completes the last one. */
static void closed(const char* path) {
  char name[2][1024];
  for (int i = 0; i < 2; ++i) snprintf(name[i], sizeof(name[i]), "%s.%d", path, i);
  for (int i = 0; i < 2; ++i) {
    write_file(name[i], -10 - i);
    if (!beside()) continue;
    CHECK(access(name[i], F_OK) != 0);
    CHECK(H5Fis_hdf5(name[i]) > 0); /* To this program the file exists. */
    MPI_Barrier(MPI_COMM_WORLD);
  }
  if (beside() && n_ranks > 1) { /* One rank cannot open it without the others. */
    hid_t alone = -1;
    H5E_BEGIN_TRY { alone = H5Fopen(name[1], H5F_ACC_RDONLY, H5P_DEFAULT); }
    H5E_END_TRY
    CHECK(alone < 0);
  }
  CHECK(access(name[0], F_OK) == 0);
  hid_t file = open_file(name[1], H5F_ACC_RDWR);
  hid_t dataset = H5Dopen2(file, "values", H5P_DEFAULT);
  DO(dataset);
  check_rows(dataset, 1, -11, H5P_DEFAULT);
  write_attribute(file, "again", 4);
  DO(H5Dclose(dataset));
  DO(H5Fclose(file));
  write_file(path, -12);
}

/* Flush twice; when the process ends, the first flush is complete, and the second is not. */
static void killed(const char* path) {
  hid_t file = create_file(path);
  const char* names[2] = {"complete", "lost"};
  for (int i = 0; i < 2; ++i) {
    hid_t dataset = doubles(file, names[i], H5P_DEFAULT);
    write_rows(dataset, mine(), n_mine(), ROW, H5P_DEFAULT);
    DO(H5Dclose(dataset));
    DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
    if (i == 0) DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  _exit(0);
}

/* Like killed(), but exit() ends the process while threads encode many chunks: libraries and HDF5
 * are shut down in the meantime. */
static void exits(const char* path) {
  const hsize_t chunk[2] = {3, ROW};
  hid_t file = create_file(path);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_chunk(list, 2, chunk));
  for (int i = 0; i < 12; ++i) {
    char name[16];
    snprintf(name, sizeof(name), i == 0 ? "complete" : "lost %d", i);
    hid_t dataset = doubles(file, name, list);
    write_rows(dataset, mine(), n_mine(), ROW, H5P_DEFAULT);
    DO(H5Dclose(dataset));
    if (i > 0) continue;
    DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
    DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  }
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  MPI_Barrier(MPI_COMM_WORLD);
  fprintf(stderr, "rank %d ends\n", rank);
  exit(0);
}

static double resident_mib(void) {
  long n_all = 0;
  long n_resident = 0;
  FILE* facts = fopen("/proc/self/statm", "r");
  CHECK(facts != NULL && fscanf(facts, "%ld %ld", &n_all, &n_resident) == 2);
  fclose(facts);
  return (double)n_resident * (double)sysconf(_SC_PAGESIZE) / 1048576;
}

/* Values that rank 0 must write with HDF5, 64 MiB on each rank. During a flush, memory has only one
 * copy of them. */
static void for_rank_0(const char* path) {
  enum { N = 4 << 20 };
  typedef struct {
    double a;
    int b;
  } Pair;
  const hsize_t extent = (hsize_t)N * (hsize_t)n_ranks;
  const hsize_t start = (hsize_t)N * (hsize_t)rank;
  const hsize_t count = N;
  hid_t file = create_file(path);
  hid_t rows = doubles(file, "rows", H5P_DEFAULT);
  write_rows(rows, mine(), n_mine(), ROW, H5P_DEFAULT);
  hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(Pair));
  DO(H5Tinsert(type, "a", HOFFSET(Pair, a), H5T_NATIVE_DOUBLE));
  DO(H5Tinsert(type, "b", HOFFSET(Pair, b), H5T_NATIVE_INT));
  hid_t space = space_of(1, &extent, NULL);
  hid_t memory = space_of(1, &count, NULL);
  hid_t pairs = create(file, "pairs", type, space, H5P_DEFAULT);
  DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL));
  Pair* values = calloc(N, sizeof(Pair));
  for (int i = 0; i < N; ++i) values[i].a = values[i].b = i % 1000 + rank;
  const double before = resident_mib();
  DO(H5Dwrite(pairs, type, memory, space, H5P_DEFAULT, values));
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  if (beside()) CHECK(resident_mib() - before < 100);
  free(values);
  DO(H5Dclose(pairs));
  DO(H5Dclose(rows));
  DO(H5Sclose(memory));
  DO(H5Sclose(space));
  DO(H5Tclose(type));
  DO(H5Fclose(file));
}

static herr_t keep_text(unsigned n, const H5E_error2_t* error, void* text) {
  (void)n;
  snprintf(text, 1024, "%s", error->desc != NULL ? error->desc : "");
  return 0;
}

/* A limit on the file size makes a flush in the background fail: the next flush reports that on all
 * ranks. Without the limit, one more flush writes the data of both. */
static void limited(const char* path) {
  hid_t file = create_file(path);
  hid_t first = doubles(file, "first", H5P_DEFAULT);
  write_rows(first, mine(), n_mine(), ROW, H5P_DEFAULT);
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  struct stat facts;
  CHECK(stat(path, &facts) == 0);
  struct rlimit usual;
  DO(getrlimit(RLIMIT_FSIZE, &usual));
  MPI_Barrier(MPI_COMM_WORLD);
  const struct rlimit limit = {(rlim_t)facts.st_size + 4096, usual.rlim_max};
  DO(setrlimit(RLIMIT_FSIZE, &limit));
  hid_t later = doubles(file, "later", H5P_DEFAULT);
  write_rows(later, mine(), n_mine(), ROW, H5P_DEFAULT);
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL)); /* It succeeds, since it only submits the values. */
  if (rank == n_ranks - 1) write_value(later, 0, 2, -1, H5P_DEFAULT);
  herr_t done = 0;
  H5E_BEGIN_TRY { done = H5Fflush(file, H5F_SCOPE_GLOBAL); }
  H5E_END_TRY
  CHECK(done < 0);
  char text[1024] = "";
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_text, text);
  fprintf(stderr, "H5Fflush: %s\n", text);
  DO(setrlimit(RLIMIT_FSIZE, &usual));
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  DO(H5Dclose(first));
  DO(H5Dclose(later));
  DO(H5Fclose(file));
}

/* Like limited(), while a closed file is written, and the limit stays: MPI_Finalize reports it. */
static void limited_close(const char* path) {
  const struct rlimit limit = {65536, RLIM_INFINITY};
  DO(setrlimit(RLIMIT_FSIZE, &limit));
  write_file(path, -1);
}

int main(int argc, char** argv) {
  const Pattern patterns[] = {{"flushed", flushed}, {"changed", changed},
                              {"closed", closed},   {"killed", killed},
                              {"exits", exits},     {"for_rank_0", for_rank_0},
                              {"limited", limited}, {"limited_close", limited_close}};
  return run_patterns(argc, argv, patterns, sizeof(patterns) / sizeof(patterns[0]));
}
