/* Program that writes through parallel HDF5, as simulation codes do, without knowledge of Tailrace.
 * Each named pattern of calls writes a file of its name. A run with libtailrace_hdf5 preloaded must
 * write files with the same values (tests/python/test_hdf5_programs.py).
 *
 *   write_patterns FOLDER PATTERN...
 */

#include <unistd.h>

#include "parallel_patterns.h"

/* Write contiguous datasets, of which each rank has a block of rows; also groups and attributes. */
static void blocks(const char* path) {
  const hsize_t extents[2] = {97, 120};
  hid_t file = create_file(path);
  hid_t group = H5Gcreate2(file, "fields", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  DO(group);
  hid_t space = space_of(2, extents, NULL);
  const hid_t types[3] = {H5T_NATIVE_DOUBLE, H5T_NATIVE_FLOAT, H5T_STD_I32BE};
  const char* names[3] = {"f64", "f32", "i32_big"};
  hid_t collective = collective_list();
  for (int i = 0; i < 3; ++i) {
    hid_t dataset = create(group, names[i], types[i], space, H5P_DEFAULT);
    hsize_t first = first_row(extents[0], rank);
    hsize_t n = first_row(extents[0], rank + 1) - first;
    write_rows(dataset, first, n, extents[1], i == 1 ? collective : H5P_DEFAULT);
    write_attribute(dataset, "number", i);
    DO(H5Dclose(dataset));
  }
  write_attribute(file, "after", 7);
  DO(H5Pclose(collective));
  DO(H5Sclose(space));
  DO(H5Gclose(group));
  DO(H5Fclose(file));
}

/* Use the program's own chunks and filters, early allocation, an edge chunk, H5Dcreate1. */
static void chunks(const char* path) {
  const hsize_t extents[2] = {70, 130};
  const hsize_t chunk[2] = {16, 50};
  hid_t file = create_file(path);
  hid_t space = space_of(2, extents, NULL);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_chunk(list, 2, chunk));
  DO(H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY));
  hid_t collective = collective_list();
  hsize_t first = first_row(extents[0], rank);
  hsize_t n = first_row(extents[0], rank + 1) - first;
  hid_t dataset = H5Dcreate1(file, "own_chunks", H5T_NATIVE_DOUBLE, space, list);
  DO(dataset);
  write_rows(dataset, first, n, extents[1], H5P_DEFAULT);
  hid_t own = H5Dget_create_plist(dataset);
  CHECK(H5Pget_layout(own) == H5D_CHUNKED);
  CHECK(H5Pget_nfilters(own) == 0);
  DO(H5Pclose(own));
  DO(H5Dclose(dataset));
  DO(H5Pset_alloc_time(list, H5D_ALLOC_TIME_DEFAULT));
  DO(H5Pset_deflate(list, 4));
  dataset = create(file, "own_filters", H5T_NATIVE_DOUBLE, space, list);
  write_rows(dataset, first, n, extents[1], collective);
  DO(H5Dclose(dataset));
  dataset = create(file, "contiguous", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT);
  own = H5Dget_create_plist(dataset);
  CHECK(H5Pget_layout(own) == H5D_CONTIGUOUS);
  CHECK(H5Dget_storage_size(dataset) == extents[0] * extents[1] * sizeof(double));
  DO(H5Pclose(own));
  write_rows(dataset, first, n, extents[1], collective);
  DO(H5Dclose(dataset));
  DO(H5Pclose(collective));
  DO(H5Pclose(list));
  DO(H5Sclose(space));
  DO(H5Fclose(file));
}

/* Use strided, irregular and offset hyperslabs, points, a selection in memory, an empty one. */
static void selections(const char* path) {
  const hsize_t extents[2] = {64, 96};
  hid_t file = create_file(path);
  hid_t space = space_of(2, extents, NULL);
  hid_t dataset = create(file, "strided", H5T_NATIVE_INT, space, H5P_DEFAULT);
  int* values = malloc(64 * 96 * sizeof(int));
  for (int i = 0; i < 64 * 96; ++i) values[i] = i * 3 + rank * 100000;
  {
    /* Rows rank, rank + n_ranks, ...: every second column. */
    const hsize_t start[2] = {(hsize_t)rank, 1};
    const hsize_t stride[2] = {(hsize_t)n_ranks, 2};
    const hsize_t count[2] = {(64 - (hsize_t)rank + (hsize_t)n_ranks - 1) / (hsize_t)n_ranks, 40};
    const hsize_t n = count[0] * count[1];
    hid_t memory = space_of(1, &n, NULL);
    DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL));
    DO(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values));
    DO(H5Sclose(memory));
  }
  DO(H5Dclose(dataset));
  dataset = create(file, "irregular", H5T_NATIVE_INT, space, H5P_DEFAULT);
  {
    /* Two overlapping boxes of this rank's rows and blocks with gaps, from a wider array. */
    const hsize_t rows = 64 / (hsize_t)n_ranks;
    const hsize_t a[2] = {rows * (hsize_t)rank, 3};
    const hsize_t a_count[2] = {rows - 1, 20};
    const hsize_t b[2] = {rows * (hsize_t)rank + 1, 10};
    const hsize_t b_count[2] = {rows - 1, 30};
    const hsize_t c[2] = {rows * (hsize_t)rank, 50};
    const hsize_t c_stride[2] = {2, 8};
    const hsize_t c_count[2] = {rows / 2, 4};
    const hsize_t c_block[2] = {1, 3};
    DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, a, NULL, a_count, NULL));
    DO(H5Sselect_hyperslab(space, H5S_SELECT_OR, b, NULL, b_count, NULL));
    DO(H5Sselect_hyperslab(space, H5S_SELECT_OR, c, c_stride, c_count, c_block));
    hssize_t n = H5Sget_select_npoints(space);
    const hsize_t wide[2] = {(hsize_t)n, 2};
    const hsize_t zero[2] = {0, 1};
    const hsize_t column[2] = {(hsize_t)n, 1};
    hid_t memory = space_of(2, wide, NULL);
    DO(H5Sselect_hyperslab(memory, H5S_SELECT_SET, zero, NULL, column, NULL));
    DO(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values));
    DO(H5Sclose(memory));
  }
  DO(H5Dclose(dataset));
  dataset = create(file, "offset", H5T_NATIVE_INT, space, H5P_DEFAULT);
  {
    /* One row, which the selection's offset moves to another place for each rank. */
    const hsize_t start[2] = {2, 4};
    const hsize_t count[2] = {1, 80};
    const hsize_t n = 80;
    const hssize_t offset[2] = {5 * rank, 6};
    hid_t memory = space_of(1, &n, NULL);
    DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
    DO(H5Soffset_simple(space, offset));
    DO(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values));
    DO(H5Sclose(memory));
    const hssize_t none[2] = {0, 0};
    DO(H5Soffset_simple(space, none));
  }
  DO(H5Dclose(dataset));
  dataset = create(file, "points", H5T_NATIVE_INT, space, H5P_DEFAULT);
  {
    hsize_t points[200][2];
    const hsize_t n = 200;
    for (hsize_t i = 0; i < n; ++i) {
      /* Points have no order; none occurs twice. */
      const hsize_t at = (i * 37) % n;
      points[i][0] = (hsize_t)rank + (hsize_t)n_ranks * (at / 20);
      points[i][1] = (at % 20) * 4 + at % 3;
    }
    hid_t memory = space_of(1, &n, NULL);
    DO(H5Sselect_elements(space, H5S_SELECT_SET, n, &points[0][0]));
    DO(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values));
    DO(H5Sclose(memory));
  }
  DO(H5Dclose(dataset));
  dataset = create(file, "by_last", H5T_NATIVE_INT, space, H5P_DEFAULT);
  {
    hid_t collective = collective_list();
    hid_t memory;
    hid_t rows = rows_of(dataset, 10, rank == n_ranks - 1 ? 20 : 0, &memory);
    DO(H5Dwrite(dataset, H5T_NATIVE_INT, memory, rows, collective, values));
    DO(H5Sclose(memory));
    DO(H5Sclose(rows));
    DO(H5Pclose(collective));
  }
  DO(H5Dclose(dataset));
  free(values);
  DO(H5Sclose(space));
  DO(H5Fclose(file));
}

/* Extend a dataset by H5Dset_extent, with flushes in between; unwritten rows have fill values. */
static void grows(const char* path) {
  const hsize_t start_extents[2] = {0, 50};
  const hsize_t most[2] = {H5S_UNLIMITED, 200};
  const hsize_t chunk[2] = {10, 32};
  const double fill = -1.25;
  hid_t file = create_file(path);
  hid_t space = space_of(2, start_extents, most);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_chunk(list, 2, chunk));
  DO(H5Pset_fill_value(list, H5T_NATIVE_DOUBLE, &fill));
  hid_t dataset = create(file, "steps", H5T_NATIVE_FLOAT, space, list);
  hid_t collective = collective_list();
  for (hsize_t step = 0; step < 6; ++step) {
    const hsize_t extents[2] = {(step + 1) * 8, 50 + step * 10};
    DO(H5Dset_extent(dataset, extents));
    for (int of = 0; of < 8; ++of) {
      /* Ranks write rows in turn; the last row of each step stays unwritten. */
      if (of % n_ranks != rank || of == 7) continue;
      write_rows(dataset, step * 8 + (hsize_t)of, 1, extents[1], H5P_DEFAULT);
    }
    if (step % 2 == 1) DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  }
  DO(H5Pclose(collective));
  DO(H5Dclose(dataset));
  /* This dataset is extended and shrunk, before its first flush and after. */
  dataset = create(file, "cut", H5T_NATIVE_DOUBLE, space, list);
  hsize_t extents[2] = {40, 50};
  DO(H5Dset_extent(dataset, extents));
  hsize_t first = first_row(40, rank);
  write_rows(dataset, first, first_row(40, rank + 1) - first, 50, H5P_DEFAULT);
  extents[0] = 33;
  extents[1] = 45;
  DO(H5Dset_extent(dataset, extents));
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  extents[0] = 27;
  DO(H5Dset_extent(dataset, extents));
  extents[0] = 38;
  DO(H5Dextend(dataset, extents));
  if (rank == 0) write_rows(dataset, 36, 2, 45, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  DO(H5Pclose(list));
  DO(H5Sclose(space));
  DO(H5Fclose(file));
}

typedef struct {
  int id;
  double position[3];
  char name[8];
} Particle;

static hid_t particle_type(void) {
  const hsize_t three = 3;
  hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(Particle));
  hid_t position = H5Tarray_create2(H5T_NATIVE_DOUBLE, 1, &three);
  hid_t name = H5Tcopy(H5T_C_S1);
  DO(H5Tset_size(name, 8));
  DO(H5Tinsert(type, "id", HOFFSET(Particle, id), H5T_NATIVE_INT));
  DO(H5Tinsert(type, "position", HOFFSET(Particle, position), position));
  DO(H5Tinsert(type, "name", HOFFSET(Particle, name), name));
  DO(H5Tclose(position));
  DO(H5Tclose(name));
  return type;
}

/* Write what rank 0 writes for all: compounds, enums, strings, scalars, compact and many small
 * datasets. */
static void small(const char* path) {
  hid_t file = create_file(path);
  hid_t type = particle_type();
  const hsize_t n = 300;
  hid_t space = space_of(1, &n, NULL);
  hid_t dataset = create(file, "particles", type, space, H5P_DEFAULT);
  hsize_t first = first_row(n, rank);
  hsize_t count = first_row(n, rank + 1) - first;
  Particle* particles = calloc(count + 1, sizeof(Particle));
  for (hsize_t i = 0; i < count; ++i) {
    particles[i].id = (int)(first + i);
    particles[i].position[0] = value_at(first + i);
    particles[i].position[2] = -1;
    snprintf(particles[i].name, 8, "p%d", (int)((first + i) % 1000));
  }
  hid_t memory;
  hid_t rows = rows_of(dataset, first, count, &memory);
  DO(H5Dwrite(dataset, type, memory, rows, H5P_DEFAULT, particles));
  DO(H5Sclose(rows));
  DO(H5Sclose(memory));
  free(particles);
  DO(H5Dclose(dataset));
  DO(H5Tclose(type));
  /* An enum and a compact dataset; a scalar that only the last rank writes. */
  hid_t colour = H5Tenum_create(H5T_NATIVE_SHORT);
  short red = 1;
  short blue = 4;
  DO(H5Tenum_insert(colour, "red", &red));
  DO(H5Tenum_insert(colour, "blue", &blue));
  dataset = create(file, "colours", colour, space, H5P_DEFAULT);
  if (rank == 0) {
    short colours[300];
    for (int i = 0; i < 300; ++i) colours[i] = i % 2 ? red : blue;
    DO(H5Dwrite(dataset, colour, H5S_ALL, H5S_ALL, H5P_DEFAULT, colours));
  }
  DO(H5Dclose(dataset));
  DO(H5Tclose(colour));
  hid_t compact = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_layout(compact, H5D_COMPACT));
  dataset = create(file, "compact", H5T_NATIVE_INT, space, compact);
  {
    /* Values of compact datasets are metadata, so all ranks write them. */
    int values[300];
    for (int i = 0; i < 300; ++i) values[i] = i * i;
    DO(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
  }
  DO(H5Dclose(dataset));
  DO(H5Pclose(compact));
  hid_t scalar = H5Screate(H5S_SCALAR);
  dataset = create(file, "scalar", H5T_NATIVE_DOUBLE, scalar, H5P_DEFAULT);
  double pi = 3.25;
  if (rank == n_ranks - 1) {
    DO(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &pi));
  }
  DO(H5Dclose(dataset));
  DO(H5Sclose(scalar));
  hid_t null = H5Screate(H5S_NULL);
  dataset = create(file, "nothing", H5T_NATIVE_DOUBLE, null, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  DO(H5Sclose(null));
  for (int i = 0; i < 60; ++i) {
    char name[32];
    const hsize_t ten = 10;
    int values[10];
    hid_t tens = space_of(1, &ten, NULL);
    snprintf(name, sizeof(name), "table_%02d", i);
    dataset = create(file, name, H5T_NATIVE_INT, tens, H5P_DEFAULT);
    write_attribute(dataset, "index", i);
    for (int j = 0; j < 10; ++j) values[j] = i * 10 + j;
    if (i % n_ranks == rank) {
      DO(H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
    }
    DO(H5Dclose(dataset));
    DO(H5Sclose(tens));
  }
  DO(H5Sclose(space));
  DO(H5Fclose(file));
}

enum { n_kept = 24, kept_rows = 12, kept_columns = 7 };

/* Write this rank's rows of a small dataset: every second column, or all. */
static void write_kept(hid_t dataset, int seed, int whole) {
  const hsize_t first = first_row(kept_rows, rank);
  const hsize_t start[2] = {first, 0};
  const hsize_t stride[2] = {1, whole ? 1 : 2};
  const hsize_t count[2] = {first_row(kept_rows, rank + 1) - first, whole ? kept_columns : 4};
  int values[kept_rows * kept_columns];
  hid_t space = H5Dget_space(dataset);
  hid_t memory = space_of(2, count, NULL);
  for (int i = 0; i < kept_rows * kept_columns; ++i) values[i] = seed + rank * 100 + i;
  DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL));
  DO(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, H5P_DEFAULT, values));
  DO(H5Sclose(memory));
  DO(H5Sclose(space));
}

/* Write small datasets repeatedly. They are flushed and read, and closed or left open in between.
 * Some have a fill value, some are never written, deleted, or copied.
 */
static void rewrites(const char* path) {
  const hsize_t extents[2] = {kept_rows, kept_columns};
  const int fill = -7;
  hid_t file = create_file(path);
  hid_t space = space_of(2, extents, NULL);
  hid_t filled = H5Pcreate(H5P_DATASET_CREATE);
  hid_t open[n_kept];
  DO(H5Pset_fill_value(filled, H5T_NATIVE_INT, &fill));
  for (int round = 0; round < 4; ++round) {
    for (int i = 0; i < n_kept; ++i) {
      char name[32];
      snprintf(name, sizeof(name), "kept_%02d", i);
      if (round == 0) {
        open[i] = create(file, name, H5T_NATIVE_INT, space, i % 2 ? filled : H5P_DEFAULT);
      } else if (i % 3 != 0) {
        if (round == 2 && i % 8 == 7) { /* Another dataset may get its space. */
          DO(H5Ldelete(file, name, H5P_DEFAULT));
          open[i] = create(file, name, H5T_NATIVE_INT, space, filled);
        } else {
          open[i] = H5Dopen2(file, name, H5P_DEFAULT);
        }
      }
      DO(open[i]);
      /* Some datasets are never written, others not in every round. */
      if (i % 5 != 4 && (i + round) % 4 != 3)
        write_kept(open[i], 1000 * round + i, (i + round) % 2);
      if (i % 7 == round) write_kept(open[i], 5000 + i, round % 2);
      if (i % 3 != 0) DO(H5Dclose(open[i]));
    }
    DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
    if (round == 1) DO(H5Ocopy(file, "kept_01", file, "copy", H5P_DEFAULT, H5P_DEFAULT));
    hid_t collective = collective_list();
    for (int i = 0; i < n_kept; i += 3) { /* HDF5 may cache these values. */
      int values[kept_rows * kept_columns];
      DO(H5Dread(open[i], H5T_NATIVE_INT, H5S_ALL, H5S_ALL, collective, values));
    }
    DO(H5Pclose(collective));
  }
  for (int i = 0; i < n_kept; i += 3) DO(H5Dclose(open[i]));
  DO(H5Pclose(filled));
  DO(H5Sclose(space));
  DO(H5Fclose(file));
}

/* Close a file, open it again and add to it, twice. */
static void append(const char* path) {
  const hsize_t extents[2] = {60, 100};
  const hsize_t most[2] = {H5S_UNLIMITED, 100};
  const hsize_t chunk[2] = {16, 100};
  hid_t file = create_file(path);
  hid_t space = space_of(2, extents, most);
  hid_t fixed = space_of(2, extents, NULL);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_chunk(list, 2, chunk));
  hid_t dataset = create(file, "grown", H5T_NATIVE_DOUBLE, space, list);
  hsize_t first = first_row(60, rank);
  write_rows(dataset, first, first_row(60, rank + 1) - first, 100, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  dataset = create(file, "half", H5T_NATIVE_FLOAT, fixed, H5P_DEFAULT);
  if (rank == 0) write_rows(dataset, 0, 30, 100, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  const hsize_t five = 5;
  hid_t fives = space_of(1, &five, NULL);
  dataset = create(file, "tiny", H5T_NATIVE_DOUBLE, fives, H5P_DEFAULT);
  if (rank == 0) write_rows(dataset, 0, 2, 1, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  DO(H5Fclose(file));
  for (int round = 1; round <= 2; ++round) {
    char name[32];
    file = open_file(path, H5F_ACC_RDWR);
    dataset = H5Dopen2(file, "grown", H5P_DEFAULT);
    DO(dataset);
    const hsize_t longer[2] = {60 + 25 * (hsize_t)round, 100};
    DO(H5Dset_extent(dataset, longer));
    first = 60 + 25 * (hsize_t)(round - 1) + first_row(25, rank);
    write_rows(dataset, first, 60 + 25 * (hsize_t)(round - 1) + first_row(25, rank + 1) - first,
               100, H5P_DEFAULT);
    write_attribute(dataset, round == 1 ? "first" : "second", round);
    DO(H5Dclose(dataset));
    if (round == 2) {
      dataset = H5Dopen2(file, "half", H5P_DEFAULT);
      if (rank == n_ranks - 1) write_rows(dataset, 25, 35, 100, H5P_DEFAULT);
      DO(H5Dclose(dataset));
      dataset = H5Dopen2(file, "tiny", H5P_DEFAULT);
      if (rank == n_ranks - 1) write_rows(dataset, 3, 2, 1, H5P_DEFAULT);
      DO(H5Dclose(dataset));
    }
    snprintf(name, sizeof(name), "new_%d", round);
    dataset = create(file, name, H5T_NATIVE_DOUBLE, fixed, H5P_DEFAULT);
    first = first_row(60, rank);
    write_rows(dataset, first, first_row(60, rank + 1) - first, 100, H5P_DEFAULT);
    DO(H5Dclose(dataset));
    DO(H5Fclose(file));
  }
  DO(H5Pclose(list));
  DO(H5Sclose(space));
  DO(H5Sclose(fixed));
  DO(H5Sclose(fives));
}

/* One rank creates the file alone; then all ranks open it repeatedly and write, like AMReX. */
static void prepared(const char* path) {
  const hsize_t extents[2] = {64, 50};
  const double fill = 4;
  if (rank == 0) {
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    DO(file);
    hid_t space = space_of(2, extents, NULL);
    hid_t list = H5Pcreate(H5P_DATASET_CREATE);
    DO(H5Pset_fill_value(list, H5T_NATIVE_DOUBLE, &fill));
    DO(H5Dclose(create(file, "unallocated", H5T_NATIVE_DOUBLE, space, list)));
    DO(H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY));
    DO(H5Dclose(create(file, "allocated", H5T_NATIVE_DOUBLE, space, list)));
    DO(H5Dclose(create(file, "big_endian", H5T_IEEE_F32BE, space, list)));
    DO(H5Pclose(list));
    DO(H5Sclose(space));
    DO(H5Fclose(file));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  const char* names[3] = {"unallocated", "allocated", "big_endian"};
  for (int round = 0; round < 2; ++round) {
    hid_t file = open_file(path, H5F_ACC_RDWR);
    for (int i = 0; i < 3; ++i) {
      hid_t dataset = H5Dopen2(file, names[i], H5P_DEFAULT);
      DO(dataset);
      /* Write the upper half, then some rows on both sides of the middle. */
      hsize_t first = round == 0 ? first_row(32, rank) : 28 + first_row(10, rank);
      hsize_t end = round == 0 ? first_row(32, rank + 1) : 28 + first_row(10, rank + 1);
      write_rows(dataset, first, end - first, 50, H5P_DEFAULT);
      double back[50];
      hid_t memory;
      hid_t row = rows_of(dataset, 63, 1, &memory);
      DO(H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, row, H5P_DEFAULT, back));
      CHECK(back[0] == fill && back[49] == fill);
      DO(H5Sclose(row));
      DO(H5Sclose(memory));
      DO(H5Dclose(dataset));
    }
    DO(H5Fclose(file));
  }
}

/* Several ranks write the same elements, in an order that the program's own messages ensure. */
static void overlaps(const char* path) {
  const hsize_t extents[2] = {80, 60};
  const hsize_t chunk[2] = {7, 11};
  hid_t file = create_file(path);
  hid_t space = space_of(2, extents, NULL);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  hid_t collective = collective_list();
  DO(H5Pset_chunk(list, 2, chunk));
  for (int i = 0; i < 2; ++i) {
    hid_t dataset = create(file, i == 0 ? "contiguous" : "chunked", H5T_NATIVE_DOUBLE, space,
                           i == 0 ? H5P_DEFAULT : list);
    double* zeros = calloc(80 * 60, sizeof(double));
    if (rank == 0) DO(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros));
    MPI_Barrier(MPI_COMM_WORLD);
    hsize_t first = first_row(80, rank);
    hsize_t n = first_row(80, rank + 1) - first;
    write_rows(dataset, first, n - 1, 60, H5P_DEFAULT);
    MPI_Barrier(MPI_COMM_WORLD);
    /* The last rank overwrites row 0; then each rank overwrites a row, in a collective write. */
    hid_t memory;
    hid_t rows = rows_of(dataset, 0, 1, &memory);
    if (rank == n_ranks - 1) {
      DO(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, rows, H5P_DEFAULT, zeros));
    }
    DO(H5Sclose(rows));
    DO(H5Sclose(memory));
    MPI_Barrier(MPI_COMM_WORLD);
    rows = rows_of(dataset, 10 + (hsize_t)(n_ranks - 1 - rank), 1, &memory);
    for (int j = 0; j < 60; ++j) zeros[j] = 7 + rank;
    DO(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, rows, collective, zeros));
    DO(H5Sclose(rows));
    DO(H5Sclose(memory));
    free(zeros);
    DO(H5Dclose(dataset));
  }
  DO(H5Pclose(collective));
  DO(H5Pclose(list));
  DO(H5Sclose(space));
  DO(H5Fclose(file));
}

/* A dataset of maximal size shrinks and grows again. Another one is deleted while it is open, and a
 * third one may get its space. The file has a second id. */
static void lives(const char* path) {
  const hsize_t extents[2] = {100, 100};
  const hsize_t less[2] = {100, 50};
  const hsize_t chunk[2] = {10, 10};
  const double fill = -2;
  hid_t file = create_file(path);
  hid_t space = space_of(2, extents, NULL);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_chunk(list, 2, chunk));
  DO(H5Pset_fill_value(list, H5T_NATIVE_DOUBLE, &fill));
  hid_t dataset = create(file, "cut", H5T_NATIVE_DOUBLE, space, list);
  hsize_t first = first_row(100, rank);
  hsize_t n = first_row(100, rank + 1) - first;
  write_rows(dataset, first, n, 100, H5P_DEFAULT);
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  DO(H5Dset_extent(dataset, less));
  DO(H5Dset_extent(dataset, extents));
  if (rank == 0) write_rows(dataset, 3, 2, 100, H5P_DEFAULT);
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  if (rank == 0) write_rows(dataset, 13, 2, 100, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  hid_t again = H5Freopen(file);
  DO(again);
  /* This dataset is written, flushed and deleted, and then written without a name. */
  dataset = create(file, "deleted", H5T_NATIVE_DOUBLE, space, list);
  write_rows(dataset, first, n, 100, H5P_DEFAULT);
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  DO(H5Ldelete(file, "deleted", H5P_DEFAULT));
  write_rows(dataset, first, n, 100, H5P_DEFAULT);
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  write_rows(dataset, first, n, 100, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  dataset = H5Dcreate_anon(file, H5T_NATIVE_DOUBLE, space, list, H5P_DEFAULT);
  DO(dataset);
  write_rows(dataset, first, n, 100, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  DO(H5Fclose(again));
  /* This dataset may get the space of the deleted one; only a part of it is written. */
  const hsize_t hundred = 100;
  hid_t row = space_of(1, &hundred, NULL);
  hid_t none = H5Screate(H5S_NULL);
  dataset = create(file, "row", H5T_NATIVE_DOUBLE, row, H5P_DEFAULT);
  if (rank == n_ranks - 1) write_rows(dataset, 0, 1, 1, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  dataset = create(file, "none", H5T_NATIVE_DOUBLE, none, H5P_DEFAULT);
  DO(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &fill));
  DO(H5Dclose(dataset));
  DO(H5Sclose(none));
  DO(H5Sclose(row));
  DO(H5Pclose(list));
  DO(H5Sclose(space));
  DO(H5Fclose(file));
}

/* Read written values: a rank's own at once, those of other ranks by a collective read. */
static void reads(const char* path) {
  const hsize_t extents[2] = {48, 64};
  hid_t file = create_file(path);
  hid_t space = space_of(2, extents, NULL);
  hid_t dataset = create(file, "values", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT);
  hsize_t first = first_row(48, rank);
  hsize_t n = first_row(48, rank + 1) - first;
  float* back = malloc(48 * 64 * sizeof(float));
  hid_t memory;
  hid_t collective = collective_list();
  write_rows(dataset, first, n, 64, collective);
  hid_t rows = rows_of(dataset, first, n, &memory);
  DO(H5Dread(dataset, H5T_NATIVE_FLOAT, memory, rows, H5P_DEFAULT, back));
  for (hsize_t i = 0; i < n * 64; ++i) CHECK(back[i] == (float)value_at(first * 64 + i));
  DO(H5Sclose(memory));
  DO(H5Sclose(rows));
  double* all = calloc(48 * 64, sizeof(double));
  MPI_Barrier(MPI_COMM_WORLD);
  DO(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, collective, all));
  for (hsize_t i = 0; i < 48 * 64; ++i) CHECK(all[i] == value_at(i));
  free(all);
  /* A rank's later writes replace earlier values, and its own reads see that at once. */
  double one = 1e6 + rank;
  const hsize_t start[2] = {first, 5};
  const hsize_t count[2] = {1, 1};
  const hsize_t single = 1;
  memory = space_of(1, &single, NULL);
  DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
  DO(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &one));
  double seen[2] = {0, 0};
  const hsize_t pair = 2;
  const hsize_t two[2] = {1, 2};
  hid_t memory_pair = space_of(1, &pair, NULL);
  DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, two, NULL));
  DO(H5Dread(dataset, H5T_NATIVE_DOUBLE, memory_pair, space, H5P_DEFAULT, seen));
  CHECK(seen[0] == one && seen[1] == value_at(first * 64 + 6));
  DO(H5Sclose(memory_pair));
  DO(H5Sclose(memory));
  /* Counts of open objects have only those of the program. */
  CHECK(H5Fget_obj_count(file, H5F_OBJ_ALL) == 2);
  hid_t list = H5Fget_access_plist(file);
  CHECK(H5Pget_driver(list) == H5FD_MPIO);
  DO(H5Pclose(list));
  char name[4096];
  CHECK(H5Fget_name(dataset, name, sizeof(name)) == (ssize_t)strlen(path));
  CHECK(strcmp(name, path) == 0);
  DO(H5Pclose(collective));
  DO(H5Dclose(dataset));
  DO(H5Sclose(space));
  DO(H5Fclose(file));
  free(back);
  /* Open the file to read, which HDF5 serves without Tailrace. */
  file = open_file(path, H5F_ACC_RDONLY);
  DO(H5Fclose(file));
}

/* Rename, delete, replace and copy datasets, and create one without a name. */
static void changes(const char* path) {
  const hsize_t extents[2] = {50, 100};
  hid_t file = create_file(path);
  hid_t space = space_of(2, extents, NULL);
  const char* names[4] = {"kept", "moved", "deleted", "replaced"};
  hsize_t first = first_row(50, rank);
  hsize_t n = first_row(50, rank + 1) - first;
  for (int i = 0; i < 4; ++i) {
    hid_t dataset = create(file, names[i], H5T_NATIVE_DOUBLE, space, H5P_DEFAULT);
    write_rows(dataset, first, n, 100, H5P_DEFAULT);
    DO(H5Dclose(dataset));
  }
  DO(H5Ldelete(file, "deleted", H5P_DEFAULT));
  DO(H5Lmove(file, "moved", file, "elsewhere", H5P_DEFAULT, H5P_DEFAULT));
  DO(H5Ldelete(file, "replaced", H5P_DEFAULT));
  const float fill = 2.5F;
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_fill_value(list, H5T_NATIVE_FLOAT, &fill));
  hid_t dataset = create(file, "replaced", H5T_NATIVE_FLOAT, space, list);
  DO(H5Pclose(list));
  if (rank == 0) write_rows(dataset, 5, 3, 100, H5P_DEFAULT);
  DO(H5Fflush(dataset, H5F_SCOPE_LOCAL));
  DO(H5Dclose(dataset));
  DO(H5Ldelete(file, "kept", H5P_DEFAULT));
  dataset = create(file, "late", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT);
  write_rows(dataset, first, n, 100, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  dataset = H5Dcreate_anon(file, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT);
  DO(dataset);
  write_rows(dataset, first, n, 100, H5P_DEFAULT);
  DO(H5Olink(dataset, file, "linked", H5P_DEFAULT, H5P_DEFAULT));
  DO(H5Dclose(dataset));
  DO(H5Ocopy(file, "late", file, "copy", H5P_DEFAULT, H5P_DEFAULT));
  /* A small dataset, for which only rank 0 has space. */
  const hsize_t ten = 10;
  hid_t tens = space_of(1, &ten, NULL);
  dataset = create(file, "little", H5T_NATIVE_DOUBLE, tens, H5P_DEFAULT);
  write_rows(dataset, 0, 10, 1, H5P_DEFAULT);
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  DO(H5Dclose(dataset));
  DO(H5Ocopy(file, "little", file, "little_copy", H5P_DEFAULT, H5P_DEFAULT));
  /* Without Tailrace every rank writes the copies. */
  MPI_Barrier(MPI_COMM_WORLD);
  dataset = H5Dopen2(file, "little_copy", H5P_DEFAULT);
  DO(dataset);
  if (rank == n_ranks - 1) {
    double values[10] = {0, -1, -2, -3, -4, -5, -6, -7, -8, -9};
    DO(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
  }
  DO(H5Dclose(dataset));
  DO(H5Sclose(tens));
  dataset = H5Dopen2(file, "copy", H5P_DEFAULT);
  DO(dataset);
  if (rank == n_ranks - 1) {
    const double one = -7;
    const hsize_t start[2] = {40, 40};
    const hsize_t count[2] = {1, 1};
    const hsize_t single = 1;
    hid_t memory = space_of(1, &single, NULL);
    DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
    DO(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, H5P_DEFAULT, &one));
    DO(H5Sclose(memory));
  }
  DO(H5Dclose(dataset));
  DO(H5Sclose(space));
  DO(H5Fclose(file));
}

/* End abruptly after a flush: only later writes are lost. */
static void killed(const char* path) {
  const hsize_t extents[2] = {80, 100};
  hid_t file = create_file(path);
  hid_t space = space_of(2, extents, NULL);
  hid_t dataset = create(file, "flushed", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT);
  hsize_t first = first_row(80, rank);
  write_rows(dataset, first, first_row(80, rank + 1) - first, 100, H5P_DEFAULT);
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  hid_t lost = create(file, "lost", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT);
  write_rows(lost, first, first_row(80, rank + 1) - first, 100, H5P_DEFAULT);
  MPI_Barrier(MPI_COMM_WORLD);
  _exit(0);
}

/* Leave all ids open at MPI_Finalize. */
static void left_open(const char* path) {
  const hsize_t extents[2] = {80, 100};
  hid_t file = create_file(path);
  hid_t space = space_of(2, extents, NULL);
  hid_t dataset = create(file, "values", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT);
  hsize_t first = first_row(80, rank);
  write_rows(dataset, first, first_row(80, rank + 1) - first, 100, H5P_DEFAULT);
}

/* Note an entry of the error stack; after H5Ewalk2 downward, the innermost one is left. */
static herr_t note_error(unsigned n, const H5E_error2_t* error, void* last) {
  (void)n;
  *(H5E_error2_t*)last = *error;
  return 0;
}

/* Read text of variable length from an existing file on one rank, which needs no other rank, even
 * with a collective transfer list. */
static void read_words(const char* path) {
  char name[4096];
  snprintf(name, sizeof(name), "%s.words", path);
  hid_t text = H5Tcopy(H5T_C_S1);
  DO(H5Tset_size(text, H5T_VARIABLE));
  if (rank == 0) {
    const char* word = "word";
    hid_t file = H5Fcreate(name, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    DO(file);
    hid_t scalar = H5Screate(H5S_SCALAR);
    hid_t words = create(file, "words", text, scalar, H5P_DEFAULT);
    DO(H5Dwrite(words, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, &word));
    DO(H5Sclose(scalar));
    DO(H5Dclose(words));
    DO(H5Fclose(file));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  hid_t file = open_file(name, H5F_ACC_RDWR);
  hid_t words = H5Dopen2(file, "words", H5P_DEFAULT);
  DO(words);
  if (rank == n_ranks - 1) {
    char* read = NULL;
    hid_t collective = collective_list();
    DO(H5Dread(words, text, H5S_ALL, H5S_ALL, collective, &read));
    CHECK(strcmp(read, "word") == 0);
    DO(H5free_memory(read));
    DO(H5Pclose(collective));
  }
  DO(H5Dclose(words));
  DO(H5Fclose(file));
  DO(H5Tclose(text));
}

/* Make calls that Tailrace does not serve: every rank gets an error, and the file stays intact. */
static void refused(const char* path) {
  const hsize_t extents[2] = {50, 100};
  read_words(path);
  hid_t file = create_file(path);
  hid_t space = space_of(2, extents, NULL);
  hid_t dataset = create(file, "values", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT);
  hsize_t first = first_row(50, rank);
  write_rows(dataset, first, first_row(50, rank + 1) - first, 100, H5P_DEFAULT);
  hid_t text = H5Tcopy(H5T_C_S1);
  DO(H5Tset_size(text, H5T_VARIABLE));
  hid_t scalar = H5Screate(H5S_SCALAR);
  hid_t texts = create(file, "texts", text, scalar, H5P_DEFAULT);
  const char* word = "word";
  H5E_auto2_t printer;
  void* data;
  DO(H5Eget_auto2(H5E_DEFAULT, &printer, &data));
  DO(H5Eset_auto2(H5E_DEFAULT, NULL, NULL));
  if (rank > 0) CHECK(H5Dwrite(texts, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, &word) < 0);
  /* One element in memory, all of them in the file. */
  const hsize_t one = 1;
  double value = 0;
  hid_t memory = space_of(1, &one, NULL);
  hid_t row_memory;
  CHECK(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, H5S_ALL, H5P_DEFAULT, &value) < 0);
  H5E_error2_t error;
  DO(H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, note_error, &error));
  CHECK(error.maj_num == H5E_DATASET && error.min_num == H5E_WRITEERROR);
  CHECK(strcmp(error.func_name, "H5Dwrite") == 0);
  /* A collective write that fails on one rank fails on all, and does not hang. */
  hid_t collective = collective_list();
  hid_t rows = rows_of(dataset, (hsize_t)rank, 1, &row_memory);
  double row[100];
  for (int i = 0; i < 100; ++i) row[i] = value_at((hsize_t)rank * 100 + (hsize_t)i);
  CHECK(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, rank == n_ranks - 1 ? memory : row_memory, rows,
                 collective, row) < 0);
  DO(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, row_memory, rows, collective, row));
  DO(H5Sclose(rows));
  DO(H5Sclose(row_memory));
  DO(H5Pclose(collective));
  CHECK((H5Fset_mpi_atomicity(file, 1) < 0) == (n_ranks > 1));
  CHECK(H5Fincrement_filesize(file, 4096) < 0);
  CHECK(H5Fformat_convert(file) < 0);
  hsize_t n_bytes = 0;
  CHECK(H5Fget_filesize(file, &n_bytes) < 0);
  CHECK(H5Dget_offset(dataset) == HADDR_UNDEF);
  DO(H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, note_error, &error));
  CHECK(error.min_num == H5E_UNSUPPORTED && strcmp(error.func_name, "H5Dget_offset") == 0);
  CHECK(H5Fis_hdf5(path) > 0);
  CHECK(H5Fis_hdf5("/nowhere") <= 0);
#if H5_VERSION_GE(1, 12, 0)
  CHECK(H5Fis_accessible(path, H5P_DEFAULT) > 0);
  CHECK(H5Fdelete(path, H5P_DEFAULT) < 0);
#endif
  DO(H5Eset_auto2(H5E_DEFAULT, printer, data));
  /* Closing a second id of the file leaves its objects open. */
  hid_t again = H5Freopen(file);
  DO(again);
  DO(H5Fclose(again));
  DO(H5Sclose(memory));
  DO(H5Sclose(scalar));
  DO(H5Tclose(text));
  DO(H5Dclose(texts));
  DO(H5Dclose(dataset));
  DO(H5Sclose(space));
  DO(H5Fclose(file));
}

/* A file that one rank has open alone cannot be opened by all ranks, and its open fails on all. */
static void opened_by_one(const char* path) {
  hid_t shared = create_file(path);
  DO(H5Fclose(shared));
  hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  DO(H5Pset_fapl_mpio(list, MPI_COMM_SELF, MPI_INFO_NULL));
  const int alone = n_ranks - 1;
  hid_t own = rank == alone ? H5Fopen(path, H5F_ACC_RDWR, list) : 0;
  DO(own);
  DO(H5Pclose(list));
  list = mpio_list();
  H5E_auto2_t printer;
  void* data;
  DO(H5Eget_auto2(H5E_DEFAULT, &printer, &data));
  DO(H5Eset_auto2(H5E_DEFAULT, NULL, NULL));
  CHECK(H5Fopen(path, H5F_ACC_RDWR, list) < 0);
  CHECK(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list) < 0);
  H5E_error2_t error;
  DO(H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, note_error, &error));
  CHECK(error.maj_num == H5E_FILE && error.min_num == H5E_CANTCREATE);
  DO(H5Eset_auto2(H5E_DEFAULT, printer, data));
  DO(H5Pclose(list));
  if (rank == alone) {
    write_attribute(own, "by", rank);
    DO(H5Fclose(own));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  shared = open_file(path, H5F_ACC_RDWR);
  DO(H5Aexists(shared, "by"));
  DO(H5Fclose(shared));
}

int main(int argc, char** argv) {
  static const Pattern patterns[] = {
      {"blocks", blocks},       {"chunks", chunks},     {"selections", selections},
      {"grows", grows},         {"small", small},       {"append", append},
      {"prepared", prepared},   {"overlaps", overlaps}, {"lives", lives},
      {"reads", reads},         {"changes", changes},   {"killed", killed},
      {"left_open", left_open}, {"refused", refused},   {"opened_by_one", opened_by_one},
      {"rewrites", rewrites}};
  return run_patterns(argc, argv, patterns, sizeof(patterns) / sizeof(patterns[0]));
}
