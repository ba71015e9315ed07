// Serial program that writes and reads chunks in all ways, served by Tailrace or not.
// python/test_hdf5_serial.py runs it with and without our library preloaded and compares the files.
// The program compares the values it reads with those it has written, and exits with 1 if they
// differ.

#include <hdf5.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { n_rows = 203, n_columns = 301, n_all = n_rows * n_columns };

static int failures = 0;

static void expect(int holds, const char* what) {
  if (!holds) {
    fprintf(stderr, "serial_patterns: %s\n", what);
    failures = 1;
  }
}

static float* field(int seed) {
  float* values = malloc(n_all * sizeof *values);
  for (int i = 0; i < n_all; ++i) {
    values[i] = (float)((i / n_columns) * 0.5 + (i % n_columns) * 0.25 + (i * 31 + seed) % 7);
  }
  return values;
}

static hid_t create(hid_t file, const char* name, hid_t type, int level, unsigned grows,
                    unsigned options) {
  const hsize_t extents[2] = {grows ? 0 : n_rows, n_columns};
  const hsize_t most[2] = {grows ? H5S_UNLIMITED : n_rows, n_columns};
  const hsize_t chunk[2] = {16, 40};
  const float fill = -7;
  const hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  H5Pset_chunk(list, 2, chunk);
  H5Pset_shuffle(list);
  if (level > 0) H5Pset_deflate(list, (unsigned)level);
  if (options & 1) H5Pset_fletcher32(list);
  if (options & 2) H5Pset_fill_value(list, H5T_NATIVE_FLOAT, &fill);
  const hid_t space = H5Screate_simple(2, extents, most);
  const hid_t dataset = H5Dcreate2(file, name, type, space, H5P_DEFAULT, list, H5P_DEFAULT);
  H5Sclose(space);
  H5Pclose(list);
  expect(dataset >= 0, name);
  return dataset;
}

static herr_t rows(hid_t dataset, int begin, int count, float* values, int writes) {
  const hsize_t start[2] = {(hsize_t)begin, 0};
  const hsize_t n[2] = {(hsize_t)count, n_columns};
  const hid_t space = H5Dget_space(dataset);
  const hid_t memory = H5Screate_simple(2, n, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, n, NULL);
  const herr_t done = writes
                          ? H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, values)
                          : H5Dread(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, values);
  H5Sclose(memory);
  H5Sclose(space);
  return done;
}

static void expect_field(hid_t dataset, const float* values, const char* what) {
  float* there = malloc(n_all * sizeof *there);
  expect(H5Dread(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, there) >= 0 &&
             memcmp(there, values, n_all * sizeof *there) == 0,
         what);
  for (int row = 0; row < n_rows; ++row) {
    expect(rows(dataset, row, 1, there + row * n_columns, 0) >= 0, what);
  }
  expect(memcmp(there, values, n_all * sizeof *there) == 0, what);
  free(there);
}

/// Write datasets as a whole, by rows, in overlapping parts, and over existing values.
static void write_and_look(hid_t file) {
  float* values = field(1);
  hid_t dataset = create(file, "whole", H5T_NATIVE_FLOAT, 1, 0, 1);
  H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  expect_field(dataset, values, "whole");
  H5Dclose(dataset);

  dataset = create(file, "by_rows", H5T_NATIVE_FLOAT, 4, 0, 0);
  for (int row = 0; row < n_rows; ++row) rows(dataset, row, 1, values + row * n_columns, 1);
  expect_field(dataset, values, "by_rows");
  // Overwrite one row of each chunk, with reads in between.
  for (int row = 3; row < n_rows; row += 16) {
    for (int i = 0; i < n_columns; ++i) values[row * n_columns + i] += 1000;
    rows(dataset, row, 1, values + row * n_columns, 1);
    if (row % 32 < 16) expect_field(dataset, values, "by_rows, changed");
  }
  H5Dclose(dataset);

  // Half of the rows keep the fill value; parts overlap; H5Dget_storage_size flushes staged rows.
  dataset = create(file, "partly", H5T_NATIVE_FLOAT, 6, 0, 2);
  rows(dataset, 5, 40, values, 1);
  rows(dataset, 30, 40, values + n_columns, 1);
  expect(H5Dget_storage_size(dataset) > 0, "partly: storage size");
  rows(dataset, 60, 3, values, 1);
  H5Dclose(dataset);
  dataset = H5Dopen2(file, "partly", H5P_DEFAULT);
  float two[2 * n_columns];
  rows(dataset, 4, 2, two, 0);
  expect(two[0] == -7 && memcmp(two + n_columns, values, sizeof *two * n_columns) == 0, "partly");
  H5Dclose(dataset);
  free(values);
}

/// Write records like a model: the dataset grows with each, then shrinks and grows.
static void grow(hid_t file) {
  float* values = field(2);
  hid_t dataset = create(file, "grows", H5T_NATIVE_FLOAT, 1, 1, 2);
  for (int row = 0; row < n_rows; ++row) {
    const hsize_t extents[2] = {(hsize_t)row + 1, n_columns};
    H5Dset_extent(dataset, extents);
    rows(dataset, row, 1, values + row * n_columns, 1);
  }
  expect_field(dataset, values, "grows");
  rows(dataset, 100, 4, values, 1);
  const hsize_t less[2] = {102, n_columns};
  const hsize_t more[2] = {150, n_columns};
  H5Dset_extent(dataset, less);
  H5Dset_extent(dataset, more);
  float row_there[n_columns];
  rows(dataset, 103, 1, row_there, 0);
  expect(row_there[0] == -7, "grows: shrunk");
  rows(dataset, 101, 1, row_there, 0);
  expect(memcmp(row_there, values + n_columns, sizeof row_there) == 0, "grows: kept");
  H5Dclose(dataset);
  free(values);
}

/// Use other types, points, strides, scattered memory, a transform, and unions of boxes.
static void select_otherwise(hid_t file) {
  float* values = field(3);
  hid_t dataset = create(file, "selected", H5T_NATIVE_FLOAT, 1, 0, 2);
  const hid_t space = H5Dget_space(dataset);
  const hsize_t start[2] = {1, 2};
  const hsize_t stride[2] = {3, 2};
  const hsize_t count[2] = {60, 140};
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, NULL);
  // The selection is the same in memory, so that it is not contiguous there.
  H5Dwrite(dataset, H5T_NATIVE_FLOAT, space, space, H5P_DEFAULT, values);
  const hsize_t points[3][2] = {{200, 300}, {0, 0}, {17, 41}};
  const hsize_t three = 3;
  const hid_t memory = H5Screate_simple(1, &three, NULL);
  H5Sselect_elements(space, H5S_SELECT_SET, 3, &points[0][0]);
  H5Dwrite(dataset, H5T_NATIVE_FLOAT, memory, space, H5P_DEFAULT, values);
  const hsize_t box[2] = {20, 20};
  const hsize_t elsewhere[2] = {150, 250};
  H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, box, NULL);
  H5Sselect_hyperslab(space, H5S_SELECT_OR, elsewhere, NULL, box, NULL);
  H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, space, H5P_DEFAULT, values);
  double* wide = malloc(n_all * sizeof *wide);
  H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, wide);
  expect(wide[1 * n_columns + 2] == values[1 * n_columns + 2], "selected");
  H5Sclose(memory);
  H5Sclose(space);
  H5Dclose(dataset);

  dataset = create(file, "converted", H5T_STD_I32BE, 1, 0, 0);
  H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, wide);
  H5Dclose(dataset);
  dataset = create(file, "transformed", H5T_NATIVE_FLOAT, 1, 0, 0);
  const hid_t list = H5Pcreate(H5P_DATASET_XFER);
  H5Pset_data_transform(list, "2*x+1");
  rows(dataset, 0, 30, values, 1);
  H5Dwrite(dataset, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, list, values);
  H5Pclose(list);
  for (int i = 0; i < n_all; ++i) values[i] = values[i] * 2 + 1;
  expect_field(dataset, values, "transformed");
  H5Dclose(dataset);
  free(wide);
  free(values);
}

/// Write incompressible chunks, chunks that the program has encoded, and through two ids.
static void mix(hid_t file) {
  float* values = field(4);
  unsigned state = 1;
  unsigned char* noise = (unsigned char*)values;
  for (size_t i = 0; i < n_all * sizeof *values; ++i) {
    state = state * 1664525 + 1013904223;
    noise[i] = (unsigned char)(state >> 24);
  }
  hid_t dataset = create(file, "noise", H5T_NATIVE_UINT32, 1, 0, 1);
  H5Dwrite(dataset, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  H5Dwrite(dataset, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, values);
  unsigned* again = malloc(n_all * sizeof *again);
  H5Dread(dataset, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, again);
  expect(memcmp(again, values, n_all * sizeof *again) == 0, "noise");
  H5Dclose(dataset);
  free(again);
  free(values);

  values = field(5);
  dataset = create(file, "two_ids", H5T_NATIVE_FLOAT, 0, 0, 0);
  const hid_t other = H5Dopen2(file, "two_ids", H5P_DEFAULT);
  rows(dataset, 0, n_rows, values, 1);
  rows(other, 7, 1, values, 1);
  const hsize_t start[2] = {0, 0};
  float chunk[16 * 40];
  for (int i = 0; i < 16 * 40; ++i) chunk[i] = 5;
  // The mask skips shuffle, the only filter.
  H5Dwrite_chunk(other, H5P_DEFAULT, 1, start, sizeof chunk, chunk);
  H5Dclose(other);
  rows(dataset, 20, 1, values, 1);
  H5Fflush(file, H5F_SCOPE_LOCAL);
  H5Ocopy(file, "two_ids", file, "copied", H5P_DEFAULT, H5P_DEFAULT);
  H5Dclose(dataset);
  free(values);
}

static void* write_in_thread(void* dataset) {
  float* values = field(6);
  rows(*(hid_t*)dataset, 0, 100, values, 1);
  free(values);
  return NULL;
}

/// Write a file in a forked child, like a process of Python's multiprocessing.
static void write_in_child(const char* path) {
  float* values = field(9);
  alarm(60);  // Ends a child that waits for a lock of its parent.
  const hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  const hid_t dataset = create(file, "in_child", H5T_NATIVE_FLOAT, 1, 0, 0);
  const int failed = file < 0 || rows(dataset, 0, n_rows, values, 1) < 0 || H5Dclose(dataset) < 0 ||
                     H5Fclose(file) < 0;
  free(values);
  _exit(failed);
}

/// Write in another thread and in children, and leave datasets open.
static void leave_open(hid_t file, const char* path_of_child) {
  hid_t dataset = create(file, "left_open", H5T_NATIVE_FLOAT, 1, 0, 0);
  float* values = field(7);
  rows(dataset, 50, 100, values, 1);
  pthread_t thread;
  pthread_create(&thread, NULL, write_in_thread, &dataset);
  pthread_join(thread, NULL);
  rows(dataset, 160, 1, values, 1);
  const pid_t child = fork();
  if (child == 0) _exit(0);
  waitpid(child, NULL, 0);
  const pid_t other = fork();
  if (other == 0) write_in_child(path_of_child);
  int status = -1;
  waitpid(other, &status, 0);
  expect(status == 0, "a child cannot write");
  rows(dataset, 170, 1, values, 1);
  free(values);
}

int main(int n_arguments, char** arguments) {
  char path_of_child[4096];
  if (n_arguments != 2) return 2;
  snprintf(path_of_child, sizeof path_of_child, "%s.child", arguments[1]);
  const hid_t file = H5Fcreate(arguments[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  write_and_look(file);
  grow(file);
  select_otherwise(file);
  mix(file);
  leave_open(file, path_of_child);
  H5Fclose(file);
  return failures;
}
