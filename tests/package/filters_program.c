/* A program with its own HDF5 that gets trz and xor only from libtailrace_filters.so.
 *
 *   filters_program OUT.h5        writes /trz (abs=0.5) and /xor, and reads both
 *   filters_program IN.h5 read    reads both
 */
#include <hdf5.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <tailrace/tailrace_filters.h>

enum { n_values = 20000, n_chunk = 5000 };

static double value(int i) { return 100 * sin(i * 1e-3); }

static int write_dataset(hid_t file, const char* name, H5Z_filter_t filter, size_t n_words,
                         const unsigned* words) {
  static double values[n_values];
  const hsize_t extent = n_values, chunk = n_chunk;
  for (int i = 0; i < n_values; ++i) values[i] = value(i);
  const hid_t space = H5Screate_simple(1, &extent, NULL);
  const hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  int failed = H5Pset_chunk(creation, 1, &chunk) < 0 ||
               H5Pset_filter(creation, filter, H5Z_FLAG_MANDATORY, n_words, words) < 0;
  const hid_t dataset =
      H5Dcreate2(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, creation, H5P_DEFAULT);
  failed =
      failed || H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0;
  H5Dclose(dataset);
  H5Pclose(creation);
  H5Sclose(space);
  return failed;
}

static int read_dataset(hid_t file, const char* name, double bound) {
  static double values[n_values];
  double worst = 0;
  const hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  const int failed = H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, values) < 0;
  for (int i = 0; i < n_values; ++i) worst = fmax(worst, fabs(values[i] - value(i)));
  printf("%s %llu bytes, error %g\n", name, (unsigned long long)H5Dget_storage_size(dataset),
         worst);
  H5Dclose(dataset);
  return failed || !(worst <= bound);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  const int registered = tailrace_register_filters();
  printf("registered: %d\n", registered);
  if (registered != TAILRACE_FILTERS_OK) return 3;
  int failed = 0;
  if (argc == 2) {
    const unsigned trz[4] = {257, 0, 0, 1071644672}, xor[1] = {
                                                         1};
    const hid_t file = H5Fcreate(argv[1], H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
    failed |= write_dataset(file, "trz", 481, 4, trz);
    failed |= write_dataset(file, "xor", 482, 1, xor);
    failed |= H5Fclose(file) < 0;
  }
  const hid_t file = H5Fopen(argv[1], H5F_ACC_RDONLY, H5P_DEFAULT);
  failed |= read_dataset(file, "trz", 0.5);
  failed |= read_dataset(file, "xor", 0);
  H5Fclose(file);
  return failed;
}
