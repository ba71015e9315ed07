/* Patterns like those of write_patterns.c, with selections of very many points
 * (H5Sselect_elements), which programs with lists of cells make. Points are neighbours, or have no
 * order, or occur twice. Some datasets grow afterwards along their faster dimension. Members of
 * compounds and reads are tested, too.
 *
 *   write_points FOLDER PATTERN...
 */

#include "parallel_patterns.h"

enum { n_rows = 120, n_columns = 90, n_cells = n_rows * n_columns };

/* Number of this rank's cells: those whose number modulo n_ranks is the rank. */
static hsize_t n_mine(void) { return (hsize_t)((n_cells - rank + n_ranks - 1) / n_ranks); }

static hid_t points_of(hid_t dataset, hsize_t n, const hsize_t* cells) {
  hid_t space = H5Dget_space(dataset);
  hsize_t* points = malloc((n + 1) * 2 * sizeof *points);
  for (hsize_t i = 0; i < n; ++i) {
    points[2 * i] = cells[i] / n_columns;
    points[2 * i + 1] = cells[i] % n_columns;
  }
  DO(H5Sselect_elements(space, H5S_SELECT_SET, n, points));
  free(points);
  return space;
}

static void transfer(hid_t dataset, hid_t type, hsize_t n, const hsize_t* cells, void* values,
                     int writes, hid_t list) {
  hid_t space = points_of(dataset, n, cells);
  hid_t memory = space_of(1, &n, NULL);
  if (writes) {
    DO(H5Dwrite(dataset, type, memory, space, list, values));
  } else {
    DO(H5Dread(dataset, type, memory, space, list, values));
  }
  DO(H5Sclose(memory));
  DO(H5Sclose(space));
}

static hid_t cells_dataset(hid_t file, const char* name, hid_t type, int chunked) {
  const hsize_t extents[2] = {n_rows, n_columns};
  const hsize_t most[2] = {H5S_UNLIMITED, H5S_UNLIMITED};
  const hsize_t chunk[2] = {32, 40};
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  if (chunked) DO(H5Pset_chunk(list, 2, chunk));
  hid_t space = space_of(2, extents, chunked ? most : NULL);
  hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
  DO(dataset);
  DO(H5Pclose(list));
  DO(H5Sclose(space));
  return dataset;
}

/* Each rank writes one run of consecutive cells, over the ends of rows. */
static void runs(const char* path) {
  const hsize_t first = first_row(n_cells, rank);
  const hsize_t n = first_row(n_cells, rank + 1) - first;
  hsize_t* cells = malloc(n * sizeof *cells);
  double* values = malloc(n * sizeof *values);
  for (hsize_t i = 0; i < n; ++i) {
    cells[i] = first + i;
    values[i] = value_at(cells[i]);
  }
  hid_t file = create_file(path);
  hid_t dataset = cells_dataset(file, "a", H5T_NATIVE_DOUBLE, 0);
  transfer(dataset, H5T_NATIVE_DOUBLE, n, cells, values, 1, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  DO(H5Fclose(file));
  free(cells);
  free(values);
}

/* Write this rank's cells from floats in random order; then some of them twice, after a dataset has
 * grown in both dimensions. */
static void scattered(const char* path) {
  const hsize_t n = n_mine();
  hsize_t* cells = malloc((n + 500) * sizeof *cells);
  float* values = malloc((n + 500) * sizeof *values);
  for (hsize_t i = 0; i < n; ++i) {
    cells[i] = (i * 1009) % n * (hsize_t)n_ranks + (hsize_t)rank;
    values[i] = (float)value_at(cells[i]);
  }
  hid_t file = create_file(path);
  for (int chunked = 0; chunked < 2; ++chunked) {
    const char* names[2] = {"b", "b_grows"};
    hid_t dataset = cells_dataset(file, names[chunked], H5T_NATIVE_DOUBLE, chunked);
    transfer(dataset, H5T_NATIVE_FLOAT, n, cells, values, 1, H5P_DEFAULT);
    if (chunked) {
      const hsize_t wider[2] = {n_rows + 7, n_columns + 30};
      DO(H5Dset_extent(dataset, wider));
    }
    /* Each point occurs twice, and its second value stays. */
    for (int again = 0; again < 2; ++again) {
      for (hsize_t i = 0; i < 250; ++i) {
        cells[n + 250 * (hsize_t)again + i] = cells[i * 7];
        values[n + 250 * (hsize_t)again + i] = (float)(i + 1000 * (hsize_t)again);
      }
    }
    transfer(dataset, H5T_NATIVE_FLOAT, 500, cells + n, values + n, 1, H5P_DEFAULT);
    float* there = malloc(n * sizeof *there);
    transfer(dataset, H5T_NATIVE_FLOAT, n, cells, there, 0, H5P_DEFAULT);
    for (hsize_t i = 0; i < n; ++i) {
      const int changed = i % 7 == 0 && i / 7 < 250;
      CHECK(there[i] == (changed ? (float)(i / 7 + 1000) : values[i]));
    }
    free(there);
    DO(H5Dclose(dataset));
  }
  DO(H5Fclose(file));
  free(cells);
  free(values);
}

/* Read cells of all ranks after a flush, in random order, some of them twice. */
static void reads(const char* path) {
  hid_t file = create_file(path);
  hid_t dataset = cells_dataset(file, "c", H5T_NATIVE_DOUBLE, 1);
  const hsize_t first = first_row(n_rows, rank);
  write_rows(dataset, first, first_row(n_rows, rank + 1) - first, n_columns, H5P_DEFAULT);
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  enum { n = 4000 };
  hsize_t* cells = malloc(n * sizeof *cells);
  double* there = malloc(n * sizeof *there);
  for (hsize_t i = 0; i < n; ++i) cells[i] = i * 7919 % n_cells / 2 * 2;
  transfer(dataset, H5T_NATIVE_DOUBLE, n, cells, there, 0, H5P_DEFAULT);
  for (hsize_t i = 0; i < n; ++i) CHECK(there[i] == value_at(cells[i]));
  DO(H5Dclose(dataset));
  DO(H5Fclose(file));
  free(cells);
  free(there);
}

/* Write compounds, which rank 0 stores: each rank's points with all members, then with one. */
static void members(const char* path) {
  typedef struct {
    double x;
    int n;
  } cell;
  hid_t type = H5Tcreate(H5T_COMPOUND, sizeof(cell));
  DO(H5Tinsert(type, "x", HOFFSET(cell, x), H5T_NATIVE_DOUBLE));
  DO(H5Tinsert(type, "n", HOFFSET(cell, n), H5T_NATIVE_INT));
  hid_t alone = H5Tcreate(H5T_COMPOUND, sizeof(int));
  DO(H5Tinsert(alone, "n", 0, H5T_NATIVE_INT));
  const hsize_t n = n_mine();
  hsize_t* cells = malloc(n * sizeof *cells);
  cell* values = calloc(n, sizeof *values);
  int* numbers = malloc(n * sizeof *numbers);
  for (hsize_t i = 0; i < n; ++i) {
    cells[i] = (i * 1009) % n * (hsize_t)n_ranks + (hsize_t)rank;
    values[i].x = value_at(cells[i]);
    values[i].n = -1;
    numbers[i] = (int)cells[i];
  }
  hid_t file = create_file(path);
  hid_t dataset = cells_dataset(file, "d", type, 0);
  transfer(dataset, type, n, cells, values, 1, H5P_DEFAULT);
  transfer(dataset, alone, n / 2, cells, numbers, 1, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  DO(H5Fclose(file));
  DO(H5Tclose(type));
  DO(H5Tclose(alone));
  free(cells);
  free(values);
  free(numbers);
}

int main(int argc, char** argv) {
  static const Pattern patterns[] = {
      {"runs", runs}, {"scattered", scattered}, {"reads", reads}, {"members", members}};
  return run_patterns(argc, argv, patterns, sizeof(patterns) / sizeof(patterns[0]));
}
