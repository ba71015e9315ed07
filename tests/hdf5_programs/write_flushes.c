/* Program that writes through parallel HDF5 and flushes. tests/campaign and
 * tests/python/test_hdf5_programs.py run it to test crashes and calls that fail.
 *
 *   write_flushes FOLDER flushes|limited|large|copies
 */

#define _GNU_SOURCE
#include <hdf5.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../campaign/mark.h"

static int rank;
static int n_ranks;
static int failed; /* Exit status. */

static hid_t mpio_list(void) {
  hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  H5Pset_fapl_mpio(list, MPI_COMM_WORLD, MPI_INFO_NULL);
  return list;
}

static hid_t collective_list(void) {
  hid_t list = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_dxpl_mpio(list, H5FD_MPIO_COLLECTIVE);
  return list;
}

static hid_t create(hid_t location, const char* name, hid_t type, hid_t space, hid_t list) {
  return H5Dcreate2(location, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
}

/* First element of a rank if n elements are distributed evenly. */
static hsize_t first_of(hsize_t n, int of_rank) { return n * (hsize_t)of_rank / (hsize_t)n_ranks; }

static herr_t keep_text(unsigned n, const H5E_error2_t* error, void* text) {
  (void)n;
  snprintf(text, 1024, "%s", error->desc != NULL ? error->desc : "");
  return 0;
}

/* Return the innermost message of HDF5's error stack for the last call. */
static const char* last_error(void) {
  static char text[1024];
  text[0] = 0;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, keep_text, text);
  return text;
}

enum { WIDTH = 256, PIECE = 64 };

/* Write this rank's part of a row of 256 elements, or of a flat dataset if `row` is negative. */
static herr_t write_part(hid_t dataset, int row, hid_t type, hid_t list, const void* values) {
  const hsize_t from = first_of(WIDTH, rank);
  const hsize_t count[2] = {1, first_of(WIDTH, rank + 1) - from};
  const hsize_t start[2] = {(hsize_t)(row < 0 ? 0 : row), from};
  const int flat = row < 0;
  hid_t space = H5Dget_space(dataset);
  hid_t memory = H5Screate_simple(1, count + 1, NULL);
  herr_t done = H5Sselect_hyperslab(space, H5S_SELECT_SET, start + flat, NULL, count + flat, NULL);
  if (done >= 0) done = H5Dwrite(dataset, type, memory, space, list, values);
  H5Sclose(memory);
  H5Sclose(space);
  return done;
}

/* Write one step of flushes(). If a call fails on this rank only, the program goes on to the flush,
 * like the other ranks. The flush returns an error to all of them. */
static int write_step(hid_t file, const hid_t datasets[3], int step, hid_t collective) {
  float values[WIDTH];
  int numbers[WIDTH];
  double few[10];
  const int from = (int)first_of(WIDTH, rank);
  for (int i = 0; i < WIDTH; ++i) {
    const uint64_t key = (uint64_t)(from + i) + 1000003 * (uint64_t)step;
    values[i] = (float)((uint32_t)(key * 2654435761U) >> 16);
    numbers[i] = step + from + i;
    if (i < 10) few[i] = 10 * step + i;
  }
  const hsize_t extents[2] = {(hsize_t)step + 1, WIDTH};
  const hsize_t piece = PIECE;
  char name[32];
  snprintf(name, sizeof(name), "step_%d", step);
  int good = H5Dset_extent(datasets[0], extents) >= 0;
  good &= write_part(datasets[0], step, H5T_NATIVE_FLOAT, collective, values) >= 0;
  good &= write_part(datasets[1], -1, H5T_NATIVE_INT, H5P_DEFAULT, numbers) >= 0;
  if (rank == n_ranks - 1) {
    good &= H5Dwrite(datasets[2], H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, few) >= 0;
  }
  hid_t group = H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  hid_t space = H5Screate_simple(1, extents + 1, NULL);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 1, &piece);
  hid_t own = create(group, "c", H5T_NATIVE_FLOAT, space, list);
  good &= group >= 0 && own >= 0;
  good &= write_part(own, -1, H5T_NATIVE_FLOAT, H5P_DEFAULT, values) >= 0;
  if (own >= 0) H5Dclose(own);
  if (group >= 0) H5Gclose(group);
  H5Pclose(list);
  H5Sclose(space);
  return good;
}

/* Write steps with a flush after each. Datasets: one that grows (a), one that is overwritten (b),
 * one that rank 0 writes through HDF5 (few), and one in a group of the step. An existing file gets
 * more steps, up to FLUSHES (default 5). tests/campaign crashes the program: a step is committed
 * when its H5Fflush has returned, or in mode=async (`BESIDE=1`) the next one. The first flush that
 * fails prints one line and ends the steps. */
static void flushes(const char* path) {
  const char* wanted = getenv("FLUSHES");
  const int n_steps = wanted != NULL ? atoi(wanted) : 5;
  const int under_way = getenv("BESIDE") != NULL ? 1 : 0;
  int more = access(path, F_OK) == 0; /* Rank 0 decides: other nodes may see an older folder. */
  MPI_Bcast(&more, 1, MPI_INT, 0, MPI_COMM_WORLD);
  hid_t access_list = mpio_list();
  hid_t file = more ? H5Fopen(path, H5F_ACC_RDWR, access_list)
                    : H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access_list);
  H5Pclose(access_list);
  if (file < 0) {
    fprintf(stderr, "campaign error: %s\n", last_error());
    failed = 1;
    return;
  }
  hid_t datasets[3];
  hsize_t extents[2] = {0, WIDTH};
  if (more) {
    const char* names[3] = {"a", "b", "few"};
    for (int i = 0; i < 3; ++i) datasets[i] = H5Dopen2(file, names[i], H5P_DEFAULT);
    hid_t space = H5Dget_space(datasets[0]);
    H5Sget_simple_extent_dims(space, extents, NULL);
    H5Sclose(space);
  } else {
    const hsize_t most[2] = {H5S_UNLIMITED, WIDTH};
    const hsize_t chunk[2] = {1, PIECE};
    const hsize_t ten = 10;
    hid_t spaces[3] = {H5Screate_simple(2, extents, most), H5Screate_simple(1, extents + 1, NULL),
                       H5Screate_simple(1, &ten, NULL)};
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    H5Pset_chunk(list, 2, chunk);
    datasets[0] = create(file, "a", H5T_NATIVE_FLOAT, spaces[0], list);
    H5Pset_chunk(list, 1, chunk + 1);
    datasets[1] = create(file, "b", H5T_NATIVE_INT, spaces[1], list);
    datasets[2] = create(file, "few", H5T_NATIVE_DOUBLE, spaces[2], H5P_DEFAULT);
    for (int i = 0; i < 3; ++i) H5Sclose(spaces[i]);
    H5Pclose(list);
  }
  hid_t collective = collective_list();
  int good = 1;
  int told = 0;
  for (int step = (int)extents[0]; step < n_steps && !told; ++step) {
    good &= write_step(file, datasets, step, collective);
    /* Rank 0 writes the values of a closed dataset in place, without HDF5. */
    if (step % 2 == 1) {
      good &= H5Dclose(datasets[2]) >= 0;
      datasets[2] = -1;
    }
    /* A call may have failed on one rank only: then all ranks end. */
    MPI_Allreduce(MPI_IN_PLACE, &good, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (H5Fflush(file, H5F_SCOPE_GLOBAL) < 0) {
      fprintf(stderr, "campaign error: %s\n", last_error());
      told = 1;
    } else if (!good) {
      fprintf(stderr, "campaign error: a call has failed\n");
      told = 1;
    } else {
      campaign_note((uint64_t)(step + 1 - under_way));
    }
    if (!told && datasets[2] < 0) datasets[2] = H5Dopen2(file, "few", H5P_DEFAULT);
  }
  if (under_way && !told) {
    if (H5Fflush(file, H5F_SCOPE_GLOBAL) < 0) {
      fprintf(stderr, "campaign error: %s\n", last_error());
      told = 1;
    } else {
      campaign_note((uint64_t)n_steps);
    }
  }
  for (int i = 0; i < 3; ++i) {
    if (datasets[i] >= 0) H5Dclose(datasets[i]);
  }
  H5Pclose(collective);
  if (H5Fclose(file) < 0 && !told) {
    fprintf(stderr, "campaign error: %s\n", last_error());
    told = 1;
  }
  failed = told;
}

static herr_t write_rows(hid_t file, const char* name) {
  enum { ROWS = 400, ROW = 500 };
  const hsize_t extents[2] = {ROWS, ROW};
  const hsize_t start[2] = {first_of(ROWS, rank), 0};
  const hsize_t count[2] = {first_of(ROWS, rank + 1) - start[0], ROW};
  double* values = malloc(count[0] * ROW * sizeof(double));
  for (hsize_t i = 0; i < count[0] * ROW; ++i) values[i] = (double)(start[0] * ROW + i);
  hid_t space = H5Screate_simple(2, extents, NULL);
  hid_t dataset = create(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT);
  hid_t memory = H5Screate_simple(2, count, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
  herr_t done = H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, values);
  H5Dclose(dataset);
  H5Sclose(memory);
  H5Sclose(space);
  free(values);
  return done;
}

/* Limit the size of files (RLIMIT_FSIZE, which `ulimit -f` sets): the flush fails on every rank, no
 * signal kills a rank, and the file keeps the data of the flush before. */
static void limited(const char* path) {
  hid_t access_list = mpio_list();
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access_list);
  H5Pclose(access_list);
  struct stat facts;
  failed = file < 0 || write_rows(file, "flushed") < 0 || H5Fflush(file, H5F_SCOPE_GLOBAL) < 0 ||
           stat(path, &facts) != 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (failed) return;
  const rlim_t most = (rlim_t)facts.st_size + 4096;
  const struct rlimit limit = {most, most};
  setrlimit(RLIMIT_FSIZE, &limit);
  failed |= write_rows(file, "later") < 0;
  failed |= H5Fflush(file, H5F_SCOPE_GLOBAL) >= 0;
  fprintf(stderr, "H5Fflush: %s\n", last_error());
  failed |= H5Fclose(file) >= 0;
}

/* Print the error of a call if it failed; all ranks go on. */
static void tell(const char* call, herr_t done) {
  if (done >= 0) return;
  failed = 1;
  fprintf(stderr, "%s: %s\n", call, last_error());
}

/* Make collective calls for which each rank needs a MiB or more: values are converted, gathered,
 * cut off in the middle of chunks, written by rank 0, and copied. */
static void large(const char* path) {
  enum { ROWS = 512, COLUMNS = 512 };
  const hsize_t extents[2] = {ROWS, COLUMNS};
  const hsize_t chunk[2] = {200, COLUMNS};
  const hsize_t start[2] = {first_of(ROWS, rank), 0};
  const hsize_t count[2] = {first_of(ROWS, rank + 1) - start[0], COLUMNS};
  hid_t access_list = mpio_list();
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access_list);
  H5Pclose(access_list);
  hid_t collective = collective_list();
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 2, chunk);
  hid_t space = H5Screate_simple(2, extents, NULL);
  hid_t memory = H5Screate_simple(2, count, NULL);
  hid_t cut = create(file, "cut", H5T_NATIVE_FLOAT, space, list);
  /* Elements of three bytes, which Tailrace does not store in chunks. */
  hid_t three = H5Tcreate(H5T_OPAQUE, 3);
  hid_t plain = create(file, "plain", three, space, H5P_DEFAULT);
  double* values = calloc(ROWS * COLUMNS, sizeof(double));
  for (int i = 0; i < ROWS * COLUMNS; ++i) values[i] = i + ROWS * COLUMNS * rank;
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
  tell("H5Dwrite", H5Dwrite(cut, H5T_NATIVE_DOUBLE, memory, space, collective, values));
  tell("H5Dwrite", H5Dwrite(plain, three, memory, space, collective, values));
  tell("H5Fflush", H5Fflush(file, H5F_SCOPE_GLOBAL));
  const hsize_t fewer[2] = {ROWS - 150, COLUMNS - 7};
  tell("H5Dset_extent", H5Dset_extent(cut, fewer));
  tell("H5Dwrite", H5Dwrite(plain, three, memory, space, collective, values));
  tell("H5Fflush", H5Fflush(file, H5F_SCOPE_GLOBAL));
  free(values);
  H5Dclose(cut);
  H5Dclose(plain);
  H5Tclose(three);
  H5Sclose(memory);
  H5Sclose(space);
  H5Pclose(list);
  H5Pclose(collective);
  tell("H5Fclose", H5Fclose(file));
}

/* Flush many datasets and copy them, which doubles a list that each rank builds on its own. Later
 * calls need equal lists on all ranks. */
static void copies(const char* path) {
  enum { DATASETS = 40 };
  const hsize_t extents[2] = {8, WIDTH};
  const hsize_t chunk[2] = {4, PIECE};
  float values[WIDTH];
  char name[32];
  hid_t access_list = mpio_list();
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, access_list);
  H5Pclose(access_list);
  hid_t collective = collective_list();
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 2, chunk);
  hid_t space = H5Screate_simple(2, extents, NULL);
  hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  hid_t first = H5I_INVALID_HID;
  for (int i = 0; i < DATASETS; ++i) {
    snprintf(name, sizeof(name), "d%d", i);
    hid_t dataset = create(group, name, H5T_NATIVE_FLOAT, space, list);
    int all_have = dataset >= 0;
    MPI_Allreduce(MPI_IN_PLACE, &all_have, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    if (!all_have) {
      if (dataset >= 0) H5Dclose(dataset);
      break;
    }
    for (int k = 0; k < WIDTH; ++k) values[k] = (float)(i + 1);
    if (i == 0) tell("H5Dwrite", write_part(dataset, 0, H5T_NATIVE_FLOAT, collective, values));
    if (i == 0) first = dataset;
    if (i > 0) H5Dclose(dataset);
  }
  tell("H5Fflush", H5Fflush(file, H5F_SCOPE_GLOBAL));
  tell("H5Ocopy", H5Ocopy(file, "g", file, "h", H5P_DEFAULT, H5P_DEFAULT));
  tell("H5Dwrite", write_part(first, 1, H5T_NATIVE_FLOAT, collective, values));
  tell("H5Fflush", H5Fflush(file, H5F_SCOPE_GLOBAL));
  H5Dclose(first);
  H5Gclose(group);
  H5Sclose(space);
  H5Pclose(list);
  H5Pclose(collective);
  tell("H5Fclose", H5Fclose(file));
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  H5Eset_auto2(H5E_DEFAULT, NULL, NULL);
  char path[4096];
  snprintf(path, sizeof(path), "%s/%s.h5", argv[1], argv[argc - 1]);
  if (argc == 3 && strcmp(argv[2], "flushes") == 0) {
    flushes(path);
  } else if (argc == 3 && strcmp(argv[2], "limited") == 0) {
    limited(path);
  } else if (argc == 3 && strcmp(argv[2], "large") == 0) {
    large(path);
  } else if (argc == 3 && strcmp(argv[2], "copies") == 0) {
    copies(path);
  } else {
    fprintf(stderr, "write_flushes FOLDER flushes|limited|large|copies\n");
    failed = 3;
  }
  MPI_Finalize();
  return failed;
}
