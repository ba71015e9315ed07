/* Functions that the programs of this folder share: checked calls, files through MPI-IO, blocks of
 * rows whose values depend on their positions, and the run of patterns by their names.
 */

#ifndef PARALLEL_PATTERNS_H
#define PARALLEL_PATTERNS_H

#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int rank;
static int n_ranks;

/* Abort the job, with a message that names the call, unless the call succeeds. */
#define DO(call)                                                        \
  do {                                                                  \
    if ((long long)(call) < 0) {                                        \
      fprintf(stderr, "rank %d: line %d: %s\n", rank, __LINE__, #call); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                     \
    }                                                                   \
  } while (0)
#define CHECK(condition)                                                     \
  do {                                                                       \
    if (!(condition)) {                                                      \
      fprintf(stderr, "rank %d: line %d: %s\n", rank, __LINE__, #condition); \
      MPI_Abort(MPI_COMM_WORLD, 2);                                          \
    }                                                                        \
  } while (0)

static hid_t mpio_list(void) {
  hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  DO(list);
  DO(H5Pset_fapl_mpio(list, MPI_COMM_WORLD, MPI_INFO_NULL));
  return list;
}

static hid_t create_file(const char* path) {
  hid_t list = mpio_list();
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
  DO(file);
  DO(H5Pclose(list));
  return file;
}

static hid_t open_file(const char* path, unsigned flags) {
  hid_t list = mpio_list();
  hid_t file = H5Fopen(path, flags, list);
  DO(file);
  DO(H5Pclose(list));
  return file;
}

static hid_t collective_list(void) {
  hid_t list = H5Pcreate(H5P_DATASET_XFER);
  DO(list);
  DO(H5Pset_dxpl_mpio(list, H5FD_MPIO_COLLECTIVE));
  return list;
}

static hid_t space_of(int n_dimensions, const hsize_t* extents, const hsize_t* most) {
  hid_t space = H5Screate_simple(n_dimensions, extents, most);
  DO(space);
  return space;
}

static double value_at(hsize_t i) { return 1.5 * (double)i + (double)(i % 7) * 0.001; }

/* First row of a rank if n rows are distributed evenly. */
static hsize_t first_row(hsize_t n, int of_rank) { return n * (hsize_t)of_rank / (hsize_t)n_ranks; }

static hid_t rows_of(hid_t dataset, hsize_t first, hsize_t n, hid_t* memory) {
  hid_t space = H5Dget_space(dataset);
  hsize_t extents[8];
  hsize_t start[8] = {0};
  int n_dimensions = H5Sget_simple_extent_dims(space, extents, NULL);
  DO(n_dimensions);
  start[0] = first;
  extents[0] = n;
  *memory = space_of(n_dimensions, extents, NULL);
  if (n > 0) {
    DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, extents, NULL));
  } else {
    DO(H5Sselect_none(space));
    DO(H5Sselect_none(*memory));
  }
  return space;
}

/* Write `n` rows of doubles, whose values depend on their positions. */
static void write_rows(hid_t dataset, hsize_t first, hsize_t n, hsize_t row, hid_t list) {
  double* values = malloc((n * row + 1) * sizeof(double));
  hid_t memory;
  hid_t space = rows_of(dataset, first, n, &memory);
  for (hsize_t i = 0; i < n * row; ++i) values[i] = value_at(first * row + i);
  DO(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, list, values));
  DO(H5Sclose(space));
  DO(H5Sclose(memory));
  free(values);
}

static void write_attribute(hid_t object, const char* name, int value) {
  hid_t space = H5Screate(H5S_SCALAR);
  hid_t attribute = H5Acreate2(object, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
  DO(attribute);
  DO(H5Awrite(attribute, H5T_NATIVE_INT, &value));
  DO(H5Aclose(attribute));
  DO(H5Sclose(space));
}

static hid_t create(hid_t location, const char* name, hid_t type, hid_t space, hid_t list) {
  hid_t dataset = H5Dcreate2(location, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
  DO(dataset);
  return dataset;
}

typedef struct {
  const char* name;
  void (*run)(const char* path);
} Pattern;

/* Run each pattern of the command line PROGRAM FOLDER PATTERN..., into FOLDER/PATTERN.h5. */
static int run_patterns(int argc, char** argv, const Pattern* patterns, int n_patterns) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  int n_found = 0;
  for (int at = 2; at < argc; ++at) {
    for (int i = 0; i < n_patterns; ++i) {
      char path[4096];
      if (strcmp(argv[at], patterns[i].name) != 0) continue;
      snprintf(path, sizeof(path), "%s/%s.h5", argv[1], patterns[i].name);
      patterns[i].run(path);
      ++n_found;
    }
  }
  if (n_found != argc - 2) fprintf(stderr, "%s FOLDER PATTERN...\n", argv[0]);
  MPI_Finalize();
  return n_found == argc - 2 ? 0 : 3;
}

#endif
