/* Selections of very many short pieces on parallel HDF5, after E3SM-IO's case F. Many datasets
 * share one decomposition; each rank writes its pieces of a dataset by one H5Dwrite from contiguous
 * memory. Uses HDF5 and MPI only, without any call to Tailrace.
 *
 *   union_pattern FILE [OPTION VALUE]...
 *
 *   --kind K           rows: a union of hyperslabs of 1 to 4 columns (default). points: the same
 *                      elements, listed. strided: a union of two strided slabs of each level.
 *   --datasets N       200.   --levels N  72.   --columns N  866.
 *   --storage S        growing: chunks of one record of an unlimited dimension (default), or fixed:
 *                      the dataset has no unlimited dimension and no chunks.
 *   --transfers T      collective (default) or independent.
 *   --select S         each: the selection is made for each dataset, as E3SM-IO does (default), or
 *                      once.
 *   --read N           1: open the file again, read all pieces and compare them.
 *
 * Rank 0 prints one line of JSON: seconds of the slowest rank, and CPU seconds of all ranks.
 */

#define _POSIX_C_SOURCE 200809L

#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

typedef struct {
  hsize_t level, column, n;
} Piece;

static int rank, n_ranks;
static const char* kind = "rows";
static long n_datasets = 200, n_levels = 72, n_columns = 866;
static int growing = 1, collective = 1, select_each = 1, reads = 0;
static double select_cpu_s = 0;

#define DO(call)                                                                       \
  do {                                                                                 \
    if ((long long)(call) < 0) {                                                       \
      fprintf(stderr, "union_pattern: rank %d: line %d: %s\n", rank, __LINE__, #call); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                    \
    }                                                                                  \
  } while (0)

static void* memory_for(size_t n_bytes) {
  void* memory = malloc(n_bytes + 1);
  if (memory == NULL) MPI_Abort(MPI_COMM_WORLD, 1);
  return memory;
}

static double cpu_s(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* Deal pieces of 1 to 4 columns to the ranks, the same on every level. */
static size_t deal(Piece* pieces) {
  size_t n = 0;
  unsigned long long state = 1;
  for (hsize_t first = 0; first < (hsize_t)n_columns;) {
    state = state * 6364136223846793005ULL + 1442695040888963407ULL;
    hsize_t length = 1 + (state >> 33) % 4;
    if (length > (hsize_t)n_columns - first) length = (hsize_t)n_columns - first;
    if ((int)((state >> 40) % (unsigned)n_ranks) == rank) pieces[n++] = (Piece){0, first, length};
    first += length;
  }
  const size_t n_surface = n;
  for (long level = 1; level < n_levels; ++level) {
    for (size_t i = 0; i < n_surface; ++i) {
      pieces[n++] = (Piece){(hsize_t)level, pieces[i].column, pieces[i].n};
    }
  }
  return n;
}

/* Elements of kind strided: of this rank's columns, every n_ranks-th, two of four. */
static size_t deal_strided(Piece* pieces) {
  size_t n = 0;
  for (long level = 0; level < n_levels; ++level) {
    for (hsize_t c = 0; c < (hsize_t)n_columns; ++c) {
      const int mine = (int)(c % (hsize_t)n_ranks) == rank && c / (hsize_t)n_ranks % 4 < 2;
      if (mine) pieces[n++] = (Piece){(hsize_t)level, c, 1};
    }
  }
  return n;
}

static void add_slab(hid_t space, hsize_t level, hsize_t column, hsize_t stride, hsize_t count,
                     hsize_t block, int* first) {
  const hsize_t start[3] = {0, level, column}, strides[3] = {1, 1, stride};
  const hsize_t counts[3] = {1, 1, count}, blocks[3] = {1, 1, block};
  const int skipped = growing ? 0 : 1;
  DO(H5Sselect_hyperslab(space, *first ? H5S_SELECT_SET : H5S_SELECT_OR, start + skipped,
                         strides + skipped, counts + skipped, blocks + skipped));
  *first = 0;
}

static void select_pieces(hid_t space, const Piece* pieces, size_t n_pieces, hsize_t n_elements) {
  const double before_s = cpu_s();
  int first = 1;
  DO(H5Sselect_none(space));
  if (strcmp(kind, "points") == 0 && n_elements > 0) {
    const int n_dims = growing ? 3 : 2;
    hsize_t* points = memory_for(n_elements * 3 * sizeof(hsize_t));
    hsize_t* at = points;
    for (size_t i = 0; i < n_pieces; ++i) {
      for (hsize_t k = 0; k < pieces[i].n; ++k, at += n_dims) {
        if (growing) at[0] = 0;
        at[n_dims - 2] = pieces[i].level;
        at[n_dims - 1] = pieces[i].column + k;
      }
    }
    DO(H5Sselect_elements(space, H5S_SELECT_SET, n_elements, points));
    free(points);
  } else if (strcmp(kind, "strided") == 0) {
    const hsize_t step = 4 * (hsize_t)n_ranks;
    for (long level = 0; level < n_levels; ++level) {
      for (int half = 0; half < 2; ++half) {
        const hsize_t column = (hsize_t)rank + (hsize_t)(half * n_ranks);
        if (column >= (hsize_t)n_columns) continue;
        const hsize_t count = ((hsize_t)n_columns - 1 - column) / step + 1;
        add_slab(space, (hsize_t)level, column, step, count, 1, &first);
      }
    }
  } else {
    for (size_t i = 0; i < n_pieces; ++i) {
      add_slab(space, pieces[i].level, pieces[i].column, pieces[i].n, 1, pieces[i].n, &first);
    }
  }
  select_cpu_s += cpu_s() - before_s;
}

static float value_of(long dataset, const Piece* piece, hsize_t k) {
  return (float)((double)dataset * 0.5 + (double)(piece->level * (hsize_t)n_columns) +
                 (double)(piece->column + k));
}

static void fill(float* values, long dataset, const Piece* pieces, size_t n_pieces) {
  for (size_t i = 0; i < n_pieces; ++i) {
    for (hsize_t k = 0; k < pieces[i].n; ++k) *values++ = value_of(dataset, pieces + i, k);
  }
}

static hid_t open_with_mpi(const char* path, int create) {
  hid_t access = H5Pcreate(H5P_FILE_ACCESS);
  DO(H5Pset_fapl_mpio(access, MPI_COMM_WORLD, MPI_INFO_NULL));
  hid_t file = create ? H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access)
                      : H5Fopen(path, H5F_ACC_RDONLY, access);
  DO(file);
  DO(H5Pclose(access));
  return file;
}

enum { name_bytes = 32 };
static void name_of(char* name, long dataset) { snprintf(name, name_bytes, "m%05ld", dataset); }

static hid_t create_dataset(hid_t file, long number) {
  const hsize_t extents[3] = {1, (hsize_t)n_levels, (hsize_t)n_columns};
  const hsize_t most[3] = {H5S_UNLIMITED, (hsize_t)n_levels, (hsize_t)n_columns};
  char name[name_bytes];
  name_of(name, number);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  if (growing) DO(H5Pset_chunk(list, 3, extents));
  hid_t space =
      growing ? H5Screate_simple(3, extents, most) : H5Screate_simple(2, extents + 1, NULL);
  hid_t dataset = H5Dcreate2(file, name, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, list, H5P_DEFAULT);
  DO(dataset);
  DO(H5Sclose(space));
  DO(H5Pclose(list));
  return dataset;
}

static void take_option(const char* key, const char* value) {
  if (strcmp(key, "--kind") == 0)
    kind = value;
  else if (strcmp(key, "--datasets") == 0)
    n_datasets = atol(value);
  else if (strcmp(key, "--levels") == 0)
    n_levels = atol(value);
  else if (strcmp(key, "--columns") == 0)
    n_columns = atol(value);
  else if (strcmp(key, "--storage") == 0)
    growing = strcmp(value, "growing") == 0;
  else if (strcmp(key, "--transfers") == 0)
    collective = strcmp(value, "collective") == 0;
  else if (strcmp(key, "--select") == 0)
    select_each = strcmp(value, "each") == 0;
  else if (strcmp(key, "--read") == 0)
    reads = atoi(value);
  else {
    fprintf(stderr, "union_pattern: unknown option %s (its first comment lists them)\n", key);
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  if (argc < 2 || argc % 2 != 0) {
    fprintf(stderr, "union_pattern FILE [OPTION VALUE]... (its first comment lists them)\n");
    MPI_Abort(MPI_COMM_WORLD, 3);
  }
  for (int i = 2; i + 1 < argc; i += 2) take_option(argv[i], argv[i + 1]);
  Piece* pieces = memory_for((size_t)(n_levels * n_columns) * sizeof(Piece));
  const size_t n_pieces = strcmp(kind, "strided") == 0 ? deal_strided(pieces) : deal(pieces);
  hsize_t n_elements = 0;
  for (size_t i = 0; i < n_pieces; ++i) n_elements += pieces[i].n;
  float* values = memory_for(n_elements * sizeof(float));
  float* there = memory_for(n_elements * sizeof(float));
  hid_t memory = H5Screate_simple(1, &n_elements, NULL);
  hid_t list = H5Pcreate(H5P_DATASET_XFER);
  if (collective) DO(H5Pset_dxpl_mpio(list, H5FD_MPIO_COLLECTIVE));
  hid_t space = H5I_INVALID_HID;
  fill(values, 0, pieces, n_pieces);

  /* create, write, close, opening and reading: wall time; then CPU. */
  double times[5] = {0};
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_cpu_s = cpu_s();
  const double begin_s = MPI_Wtime();
  double filling_s = 0, filling_cpu_s = 0;
  hid_t file = open_with_mpi(argv[1], 1);
  for (long d = 0; d < n_datasets; ++d) {
    const double create_s = MPI_Wtime();
    hid_t dataset = create_dataset(file, d);
    times[0] += MPI_Wtime() - create_s;
    const double fill_s = MPI_Wtime(), fill_cpu_s = cpu_s();
    fill(values, d, pieces, n_pieces);
    filling_s += MPI_Wtime() - fill_s;
    filling_cpu_s += cpu_s() - fill_cpu_s;
    if (d == 0) space = H5Dget_space(dataset);
    if (d == 0 || select_each) select_pieces(space, pieces, n_pieces, n_elements);
    const double write_s = MPI_Wtime();
    DO(H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, list, values));
    times[1] += MPI_Wtime() - write_s;
    DO(H5Dclose(dataset));
  }
  const double close_s = MPI_Wtime();
  DO(H5Fclose(file));
  times[2] = MPI_Wtime() - close_s;
  times[3] = MPI_Wtime() - begin_s - filling_s;
  double cpu[3] = {cpu_s() - begin_cpu_s - filling_cpu_s, select_cpu_s, 0};
  long n_wrong = 0;
  if (reads) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double read_cpu_s = cpu_s();
    const double read_s = MPI_Wtime();
    double checking_s = 0, checking_cpu_s = 0;
    file = open_with_mpi(argv[1], 0);
    for (long d = 0; d < n_datasets; ++d) {
      char name[name_bytes];
      name_of(name, d);
      hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
      DO(dataset);
      DO(H5Dread(dataset, H5T_NATIVE_FLOAT, memory, space, list, there));
      DO(H5Dclose(dataset));
      const double check_s = MPI_Wtime(), check_cpu_s = cpu_s();
      fill(values, d, pieces, n_pieces);
      for (hsize_t i = 0; i < n_elements; ++i) n_wrong += values[i] != there[i];
      checking_s += MPI_Wtime() - check_s;
      checking_cpu_s += cpu_s() - check_cpu_s;
    }
    DO(H5Fclose(file));
    times[4] = MPI_Wtime() - read_s - checking_s;
    cpu[2] = cpu_s() - read_cpu_s - checking_cpu_s;
  }
  MPI_Allreduce(MPI_IN_PLACE, times, 5, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, cpu, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  MPI_Allreduce(MPI_IN_PLACE, &n_wrong, 1, MPI_LONG, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) {
    printf(
        "{\"kind\": \"%s\", \"ranks\": %d, \"pieces\": %zu, \"create_s\": %.3f, \"write_s\": %.3f, "
        "\"close_s\": %.3f, \"total_s\": %.3f, \"cpu_s\": %.3f, \"select_cpu_s\": %.3f, "
        "\"read_s\": %.3f, \"read_cpu_s\": %.3f, \"wrong\": %ld}\n",
        kind, n_ranks, n_pieces, times[0], times[1], times[2], times[3], cpu[0], cpu[1], times[4],
        cpu[2], n_wrong);
  }
  DO(H5Sclose(space));
  DO(H5Sclose(memory));
  DO(H5Pclose(list));
  free(pieces);
  free(values);
  free(there);
  MPI_Finalize();
  return n_wrong == 0 ? 0 : 1;
}
