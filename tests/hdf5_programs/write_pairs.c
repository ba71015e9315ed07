/* Patterns like those of write_patterns.c, with compounds of 8 bytes (complex numbers), which all
 * ranks store in chunks. Ranks write single members of the same elements in turn.
 *
 *   write_pairs FOLDER PATTERN...
 */

#include "parallel_patterns.h"

enum { n_pairs = 5000 };

/* Type with the member of this number, 0 or 1, or with both if `which` is -1. */
static hid_t pair_type(int which) {
  hid_t type = H5Tcreate(H5T_COMPOUND, which < 0 ? 8 : 4);
  if (which <= 0) DO(H5Tinsert(type, "re", 0, H5T_NATIVE_FLOAT));
  if (which < 0) DO(H5Tinsert(type, "im", 4, H5T_NATIVE_FLOAT));
  if (which == 1) DO(H5Tinsert(type, "im", 0, H5T_NATIVE_FLOAT));
  return type;
}

static void write_part(hid_t dataset, int which, int of_rank, float add) {
  const hsize_t first = first_row(n_pairs, of_rank);
  const hsize_t n = first_row(n_pairs, of_rank + 1) - first;
  const hsize_t n_each = which < 0 ? 2 : 1;
  float* values = malloc((n * n_each + 1) * sizeof *values);
  for (hsize_t i = 0; i < n * n_each; ++i) values[i] = (float)(first + i / n_each) + add;
  hid_t memory;
  hid_t rows = rows_of(dataset, first, n, &memory);
  hid_t type = pair_type(which);
  DO(H5Dwrite(dataset, type, memory, rows, H5P_DEFAULT, values));
  DO(H5Tclose(type));
  DO(H5Sclose(rows));
  DO(H5Sclose(memory));
  free(values);
}

static void read_part(hid_t dataset, int of_rank) {
  const hsize_t first = first_row(n_pairs, of_rank);
  const hsize_t n = first_row(n_pairs, of_rank + 1) - first;
  float* values = malloc((2 * n + 1) * sizeof *values);
  hid_t memory;
  hid_t rows = rows_of(dataset, first, n, &memory);
  hid_t type = pair_type(-1);
  DO(H5Dread(dataset, type, memory, rows, H5P_DEFAULT, values));
  for (hsize_t i = 0; i < n; ++i) {
    CHECK(values[2 * i] == (float)(first + i) + (of_rank == 0 ? 400.0F : 100.0F));
    CHECK(values[2 * i + 1] == (float)(first + i) + 500.0F);
  }
  DO(H5Tclose(type));
  DO(H5Sclose(rows));
  DO(H5Sclose(memory));
  free(values);
}

static void pairs(const char* path) {
  const char* names[3] = {"contiguous", "chunked", "filtered"};
  const hsize_t extent = n_pairs;
  const hsize_t most = H5S_UNLIMITED;
  const hsize_t chunk = 512;
  const int next = (rank + 1) % n_ranks;
  hid_t file = create_file(path);
  hid_t type = pair_type(-1);
  hid_t datasets[3];
  for (int i = 0; i < 3; ++i) {
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    if (i > 0) DO(H5Pset_chunk(list, 1, &chunk));
    if (i > 1) DO(H5Pset_deflate(list, 4));
    hid_t space = space_of(1, &extent, i > 0 ? &most : NULL);
    datasets[i] = create(file, names[i], type, space, list);
    DO(H5Sclose(space));
    DO(H5Pclose(list));
    write_part(datasets[i], -1, rank, 0);
    MPI_Barrier(MPI_COMM_WORLD);
    write_part(datasets[i], 0, next, 100); /* Write elements of another rank. */
    write_part(datasets[i], 1, rank, 200);
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == n_ranks - 1) write_part(datasets[i], -1, 0, 300); /* Overwrite both members, */
    MPI_Barrier(MPI_COMM_WORLD);
    if (rank == 0) write_part(datasets[i], 0, 0, 400); /* then one of them. */
  }
  /* Flush twice: if flushes run in the background, the second one completes the first. */
  for (int i = 0; i < 2; ++i) DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  for (int i = 0; i < 3; ++i) {
    write_part(datasets[i], 1, next, 500);
    read_part(datasets[i], next); /* The rank's new member replaces the flushed one. */
    DO(H5Dclose(datasets[i]));
  }
  DO(H5Tclose(type));
  DO(H5Fclose(file));
}

/* Delete a dataset before its members are written, and shrink another one. */
static void gone(const char* path) {
  const hsize_t extent = n_pairs;
  const hsize_t most = H5S_UNLIMITED;
  const hsize_t chunk = 512;
  const hsize_t less = 4000;
  hid_t file = create_file(path);
  hid_t type = pair_type(-1);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_chunk(list, 1, &chunk));
  hid_t space = space_of(1, &extent, &most);
  hid_t deleted = create(file, "deleted", type, space, list);
  hid_t cut = create(file, "cut", type, space, list);
  write_part(deleted, 0, rank, 1);
  write_part(cut, 0, rank, 1);
  DO(H5Dclose(deleted));
  DO(H5Ldelete(file, "deleted", H5P_DEFAULT));
  DO(H5Dset_extent(cut, &less));
  DO(H5Dset_extent(cut, &extent));
  DO(H5Dclose(cut));
  DO(H5Sclose(space));
  DO(H5Pclose(list));
  DO(H5Tclose(type));
  DO(H5Fclose(file));
}

int main(int argc, char** argv) {
  static const Pattern patterns[] = {{"pairs", pairs}, {"gone", gone}};
  return run_patterns(argc, argv, patterns, sizeof(patterns) / sizeof(patterns[0]));
}
