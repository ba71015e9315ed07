// Acts as a model's root rank, which writes all fields through serial HDF5.
// python/test_hdf5_serial_bounds.py runs it with and without our library and options, and compares
// the two files.
//
//   root_rank FILE          Create the file with all kinds of datasets.
//   root_rank FILE append   Append records to an existing file.
//   root_rank FILE chunk    Create a dataset, and write a chunk that the program has encoded.
//   root_rank FILE chunk opened   Write that chunk in the file opened again.
//   root_rank FILE chunk closed   Write that chunk when the file is closed, but not the dataset.
//   root_rank FILE scale    Make a dataset a dimension scale after its values are written.
//   root_rank FILE scale flushed  Flush the file in between.
//   root_rank FILE long     Write a long dataset in pieces, between levels of another one.
//   root_rank FILE flat     Create a dataset with filters, but without chunks: HDF5 refuses it.
//   root_rank FILE copies   Copy a dataset and its group by H5Ocopy, and link an anonymous one.
//                           Then write encoded chunks into the copies.
//   root_rank FILE apart    Copy a dataset of FILE.from, which is open read-only, into FILE.
//                           Create an anonymous dataset of integers, and write an encoded chunk
//                           into the copy.

#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { n_levels = 8, n_rows = 96, n_columns = 160, n_cells = n_rows * n_columns };

static int failures = 0;

static void expect(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "root_rank: %s\n", what);
    failures = 1;
  }
}

static double value_at(int step, int cell) {
  const double x = cell % n_columns * 0.05;
  const double y = cell / n_columns * 0.07;
  return 280 + 20 * sin(x + 0.1 * step) * cos(y) + 0.01 * ((cell * 31 + step) % 17);
}

static void fill(float* values, int step) {
  for (int i = 0; i < n_cells; ++i) values[i] = (float)value_at(step, i);
}

static hid_t create(hid_t file, const char* name, hid_t type, int rank, const hsize_t* extents,
                    const hsize_t* most, const hsize_t* chunk) {
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  if (chunk != NULL) {
    H5Pset_chunk(list, rank, chunk);
    H5Pset_shuffle(list);
    H5Pset_deflate(list, 1);
  }
  const hid_t space = H5Screate_simple(rank, extents, most);
  const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
  H5Sclose(space);
  H5Pclose(list);
  expect(dataset >= 0, name);
  return dataset;
}

static void box(hid_t dataset, int rank, const hsize_t* start, const hsize_t* count, hid_t type,
                const void* values) {
  const hid_t space = H5Dget_space(dataset);
  const hid_t memory = H5Screate_simple(rank, count, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL);
  expect(H5Dwrite(dataset, type, memory, space, H5P_DEFAULT, values) >= 0, "H5Dwrite");
  H5Sclose(memory);
  H5Sclose(space);
}

/// Write records one after the other; chunks hold four of them.
static void records(hid_t dataset, int first, int n) {
  float* values = malloc(n_cells * sizeof *values);
  for (int step = first; step < first + n; ++step) {
    const hsize_t extents[3] = {(hsize_t)step + 1, n_rows, n_columns};
    const hsize_t start[3] = {(hsize_t)step, 0, 0};
    const hsize_t count[3] = {1, n_rows, n_columns};
    fill(values, step);
    H5Dset_extent(dataset, extents);
    box(dataset, 3, start, count, H5T_NATIVE_FLOAT, values);
  }
  free(values);
}

static void write_levels(hid_t dataset, int first, int end) {
  double* values = malloc(n_cells * sizeof *values);
  for (int level = first; level < end; ++level) {
    const hsize_t start[3] = {(hsize_t)level, 0, 0};
    const hsize_t count[3] = {1, n_rows, n_columns};
    for (int i = 0; i < n_cells; ++i) values[i] = value_at(100 + level, i);
    box(dataset, 3, start, count, H5T_NATIVE_DOUBLE, values);
  }
  free(values);
}

/// Write levels one after the other from doubles; chunks hold all levels.
static void levels(hid_t file) {
  const hsize_t extents[3] = {n_levels, n_rows, n_columns};
  const hsize_t chunk[3] = {n_levels, n_rows / 2, n_columns};
  const hid_t group = H5Gcreate2(file, "physics", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t dataset = create(group, "wind", H5T_NATIVE_FLOAT, 3, extents, NULL, chunk);
  write_levels(dataset, 0, n_levels);
  H5Dclose(dataset);
  H5Gclose(group);
}

/// Write a whole dataset, then a row and points again, when its chunks are already in the file.
static void patches(hid_t file) {
  const hsize_t extents[2] = {n_rows, n_columns};
  const hsize_t chunk[2] = {n_rows / 4, n_columns};
  const hid_t dataset = create(file, "patched", H5T_NATIVE_FLOAT, 2, extents, NULL, chunk);
  float* values = malloc(n_cells * sizeof *values);
  fill(values, 200);
  H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  H5Fflush(file, H5F_SCOPE_LOCAL);
  for (int again = 0; again < 5; ++again) {
    const hsize_t start[2] = {30, 0};
    const hsize_t count[2] = {1, n_columns};
    fill(values, 201 + again);
    box(dataset, 2, start, count, H5T_NATIVE_FLOAT, values);
    H5Dflush(dataset);
  }
  const hsize_t points[3][2] = {{70, 3}, {50, 100}, {71, 4}};
  const hsize_t three = 3;
  const hid_t space = H5Dget_space(dataset);
  const hid_t memory = H5Screate_simple(1, &three, NULL);
  H5Sselect_elements(space, H5S_SELECT_SET, 3, &points[0][0]);
  H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, values);
  H5Sclose(memory);
  H5Sclose(space);
  H5Dclose(dataset);
  free(values);
}

static void make_scale(hid_t dataset) {
  const char scale[] = "DIMENSION_SCALE";
  const hid_t text = H5Tcopy(H5T_C_S1);
  H5Tset_size(text, sizeof scale);
  const hid_t one = H5Screate(H5S_SCALAR);
  const hid_t attribute = H5Acreate2(dataset, "CLASS", text, one, H5P_DEFAULT, H5P_DEFAULT);
  H5Awrite(attribute, text, scale);
  H5Aclose(attribute);
  H5Sclose(one);
  H5Tclose(text);
}

/// Write a contiguous dataset, integers, a coordinate, and a dataset with missing values.
static void others(hid_t file) {
  const hsize_t extents[2] = {n_rows, n_columns};
  const hsize_t chunk[2] = {n_rows, n_columns};
  float* values = malloc(n_cells * sizeof *values);
  fill(values, 300);
  hid_t dataset = create(file, "plain", H5T_NATIVE_FLOAT, 2, extents, NULL, NULL);
  H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  H5Dclose(dataset);

  int* counts = malloc(n_cells * sizeof *counts);
  for (int i = 0; i < n_cells; ++i) counts[i] = i % 1000;
  dataset = create(file, "counts", H5T_NATIVE_INT, 2, extents, NULL, chunk);
  H5Dwrite(dataset, H5T_NATIVE_INT, H5S_ALL, H5S_ALL, H5P_DEFAULT, counts);
  H5Dclose(dataset);
  free(counts);

  const hsize_t n = n_cells;
  dataset = create(file, "cell", H5T_NATIVE_FLOAT, 1, &n, NULL, &n);
  make_scale(dataset);
  H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  H5Dclose(dataset);

  const float missing = 9.96921e36F;
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 2, chunk);
  H5Pset_fill_value(list, H5T_NATIVE_FLOAT, &missing);
  const hid_t space = H5Screate_simple(2, extents, NULL);
  dataset = H5Dcreate2(file, "masked", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, list, H5P_DEFAULT);
  for (int i = 0; i < n_cells; i += 7) values[i] = missing;
  H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  H5Sclose(space);
  H5Pclose(list);
  H5Dclose(dataset);
  free(values);
}

static int write_encoded(const char* path, const char* when) {
  const hsize_t extents[2] = {n_rows, n_columns};
  const hsize_t start[2] = {0, 0};
  const char bytes[] = "of no matter";
  const int opened = strcmp(when, "opened") == 0;
  const int closed = strcmp(when, "closed") == 0;
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t dataset = create(file, "encoded", H5T_NATIVE_FLOAT, 2, extents, NULL, extents);
  if (opened) H5Dclose(dataset);
  if (opened || closed) H5Fclose(file);
  if (opened) {
    file = H5Fopen(path, H5F_ACC_RDWR, H5P_DEFAULT);
    dataset = H5Dopen2(file, "encoded", H5P_DEFAULT);
  }
  const herr_t done = H5Dwrite_chunk(dataset, H5P_DEFAULT, 0, start, sizeof bytes, bytes);
  H5Dclose(dataset);
  if (!closed) H5Fclose(file);
  return done < 0 ? 5 : failures;
}

static int write_copies(const char* path) {
  const hsize_t extents[2] = {n_rows, n_columns};
  const hsize_t start[2] = {0, 0};
  const hsize_t half[2] = {n_rows / 2, n_columns};
  const char bytes[] = "of no matter";
  const char* const copies[3] = {"one", "whole/field", "made/field"};
  float* values = malloc(n_cells * sizeof *values);
  fill(values, 3);
  const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  H5Gclose(H5Gcreate2(file, "made", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  const hid_t dataset = create(file, "made/field", H5T_NATIVE_FLOAT, 2, extents, NULL, half);
  expect(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, "write");
  expect(H5Ocopy(file, "made/field", file, "one", H5P_DEFAULT, H5P_DEFAULT) >= 0, "H5Ocopy");
  expect(H5Ocopy(file, "made", file, "whole", H5P_DEFAULT, H5P_DEFAULT) >= 0, "H5Ocopy of a group");
  H5Dclose(dataset);
  const hid_t space = H5Screate_simple(2, extents, NULL);
  const hid_t anonymous = H5Dcreate_anon(file, H5T_NATIVE_FLOAT, space, H5P_DEFAULT, H5P_DEFAULT);
  expect(H5Olink(anonymous, file, "later", H5P_DEFAULT, H5P_DEFAULT) >= 0, "H5Olink");
  H5Dclose(anonymous);
  H5Sclose(space);
  free(values);
  int refused = 0;
  for (int i = 0; i < 3; ++i) {
    const hid_t copy = H5Dopen2(file, copies[i], H5P_DEFAULT);
    refused += H5Dwrite_chunk(copy, H5P_DEFAULT, 0, start, sizeof bytes, bytes) < 0;
    H5Dclose(copy);
  }
  H5Fclose(file);
  return refused > 0 ? 10 + refused : failures;
}

static int write_copy_apart(const char* path) {
  const hsize_t extents[2] = {n_rows, n_columns};
  const hsize_t start[2] = {0, 0};
  const hsize_t half[2] = {n_rows / 2, n_columns};
  const char bytes[] = "of no matter";
  char from_path[4096];
  snprintf(from_path, sizeof from_path, "%s.from", path);
  float* values = malloc(n_cells * sizeof *values);
  fill(values, 3);
  hid_t from = H5Fcreate(from_path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t dataset = create(from, "field", H5T_NATIVE_FLOAT, 2, extents, NULL, half);
  expect(H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) >= 0, "write");
  H5Dclose(dataset);
  H5Fclose(from);
  free(values);
  from = H5Fopen(from_path, H5F_ACC_RDONLY, H5P_DEFAULT);
  const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  expect(H5Ocopy(from, "field", file, "copy", H5P_DEFAULT, H5P_DEFAULT) >= 0, "H5Ocopy");
  const hid_t space = H5Screate_simple(2, extents, NULL);
  H5Dclose(H5Dcreate_anon(file, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT));
  H5Sclose(space);
  const hid_t copy = H5Dopen2(file, "copy", H5P_DEFAULT);
  const int refused = H5Dwrite_chunk(copy, H5P_DEFAULT, 0, start, sizeof bytes, bytes) < 0;
  H5Dclose(copy);
  H5Fclose(file);
  H5Fclose(from);
  return refused > 0 ? 10 + refused : failures;
}

/// Write 16 MiB, and other fields, before the dataset becomes a dimension scale.
static int write_late_scale(const char* path, int flushes) {
  const hsize_t n = 1 << 22;
  const hsize_t extents[3] = {0, n_rows, n_columns};
  const hsize_t most[3] = {H5S_UNLIMITED, n_rows, n_columns};
  const hsize_t chunk[3] = {1, n_rows, n_columns};
  float* values = malloc(n * sizeof *values);
  for (hsize_t i = 0; i < n; ++i) values[i] = (float)(0.0001 * (double)i + 0.01 * (double)(i % 7));
  const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t axis = create(file, "axis", H5T_NATIVE_FLOAT, 1, &n, NULL, NULL);
  const hid_t temp = create(file, "temp", H5T_NATIVE_FLOAT, 3, extents, most, chunk);
  H5Dwrite(axis, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  records(temp, 0, 150);
  if (flushes) H5Fflush(file, H5F_SCOPE_LOCAL);
  make_scale(axis);
  free(values);
  H5Dclose(axis);
  H5Dclose(temp);
  return H5Fclose(file) < 0 ? 4 : failures;
}

/// Write a dataset that is larger than the library's buffers.
static int write_long(const char* path) {
  const hsize_t n = 1 << 20;
  const hsize_t n_pieces = 70;
  const hsize_t total = n * n_pieces;
  const hsize_t extents[3] = {n_levels, n_rows, n_columns};
  float* values = malloc(n * sizeof *values);
  for (hsize_t i = 0; i < n; ++i) values[i] = (float)(0.0001 * (double)i);
  const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t wind = create(file, "wind", H5T_NATIVE_FLOAT, 3, extents, NULL, extents);
  const hid_t data = create(file, "long", H5T_NATIVE_FLOAT, 1, &total, NULL, &n);
  write_levels(wind, 0, 4);
  for (hsize_t piece = 0; piece < n_pieces; ++piece) {
    const hsize_t start = piece * n;
    box(data, 1, &start, &n, H5T_NATIVE_FLOAT, values);
  }
  write_levels(wind, 4, n_levels);
  free(values);
  H5Dclose(data);
  H5Dclose(wind);
  return H5Fclose(file) < 0 ? 4 : failures;
}

static int write_flat(const char* path) {
  const hsize_t extents[2] = {n_rows, n_columns};
  float* values = malloc(n_cells * sizeof *values);
  fill(values, 400);
  const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_deflate(list, 1);
  const hid_t space = H5Screate_simple(2, extents, NULL);
  const hid_t dataset =
      H5Dcreate2(file, "flat", H5T_NATIVE_FLOAT, space, H5P_DEFAULT, list, H5P_DEFAULT);
  const herr_t done = H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  if (dataset >= 0) H5Dclose(dataset);
  H5Sclose(space);
  H5Pclose(list);
  H5Fclose(file);
  free(values);
  return done < 0 ? 5 : failures;
}

int main(int n_arguments, char** arguments) {
  if (n_arguments < 2) return 2;
  if (n_arguments > 2 && strcmp(arguments[2], "scale") == 0) {
    return write_late_scale(arguments[1], n_arguments > 3);
  }
  if (n_arguments > 2 && strcmp(arguments[2], "long") == 0) return write_long(arguments[1]);
  if (n_arguments > 2 && strcmp(arguments[2], "flat") == 0) return write_flat(arguments[1]);
  if (n_arguments > 2 && strcmp(arguments[2], "copies") == 0) return write_copies(arguments[1]);
  if (n_arguments > 2 && strcmp(arguments[2], "apart") == 0) return write_copy_apart(arguments[1]);
  if (n_arguments > 2 && strcmp(arguments[2], "chunk") == 0) {
    return write_encoded(arguments[1], n_arguments > 3 ? arguments[3] : "");
  }
  if (n_arguments > 2) {
    const hid_t file = H5Fopen(arguments[1], H5F_ACC_RDWR, H5P_DEFAULT);
    if (file < 0) return 3;
    const hid_t dataset = H5Dopen2(file, "temp", H5P_DEFAULT);
    records(dataset, 10, 6);
    H5Dclose(dataset);
    return H5Fclose(file) < 0 ? 4 : failures;
  }
  const hid_t file = H5Fcreate(arguments[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  if (file < 0) return 3;
  const hsize_t extents[3] = {0, n_rows, n_columns};
  const hsize_t most[3] = {H5S_UNLIMITED, n_rows, n_columns};
  const hsize_t chunk[3] = {4, n_rows, n_columns};
  const hid_t temp = create(file, "temp", H5T_NATIVE_FLOAT, 3, extents, most, chunk);
  records(temp, 0, 10);
  H5Dclose(temp);
  levels(file);
  patches(file);
  others(file);
  return H5Fclose(file) < 0 ? 4 : failures;
}
