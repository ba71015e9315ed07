/* Attributes that ranks create alike, in another order, or on some ranks only.
 *
 *   write_attributes FOLDER PATTERN...
 */

#include "parallel_patterns.h"

static void mark(hid_t object, const char* name) {
  hid_t space = H5Screate(H5S_SCALAR);
  hid_t attribute = H5Acreate2(object, name, H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT);
  int one = 1;
  DO(attribute);
  DO(H5Awrite(attribute, H5T_NATIVE_INT, &one));
  DO(H5Aclose(attribute));
  DO(H5Sclose(space));
}

static void alike(const char* path) {
  const hsize_t n = 10;
  hid_t file = create_file(path);
  hid_t space = space_of(1, &n, NULL);
  hid_t dataset = create(file, "u", H5T_NATIVE_INT, space, H5P_DEFAULT);
  mark(dataset, "units");
  mark(dataset, rank % 2 ? "first" : "second");
  mark(dataset, rank % 2 ? "second" : "first");
  hid_t scalar = H5Screate(H5S_SCALAR);
  hid_t by_name = H5Acreate_by_name(file, "u", "by name", H5T_NATIVE_INT, scalar, H5P_DEFAULT,
                                    H5P_DEFAULT, H5P_DEFAULT);
  DO(by_name);
  DO(H5Aclose(by_name));
  DO(H5Sclose(scalar));
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  mark(file, "end");
  DO(H5Dclose(dataset));
  DO(H5Sclose(space));
  DO(H5Fclose(file));
}

/* Rank 0 alone creates one, as a program may that knows its file has one writer. */
static void on_root(const char* path) {
  hid_t file = create_file(path);
  if (rank == 0) mark(file, "by root");
  DO(H5Fclose(file));
}

/* The last rank alone creates one, which is lost; a flush tells it, and H5Fclose is silent. */
static void on_last(const char* path) {
  hid_t file = create_file(path);
  hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  mark(group, "alike");
  if (rank == n_ranks - 1) mark(group, "by last");
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  mark(group, "later");
  DO(H5Gclose(group));
  DO(H5Fclose(file));
}

int main(int argc, char** argv) {
  static const Pattern patterns[] = {{"alike", alike}, {"on_root", on_root}, {"on_last", on_last}};
  return run_patterns(argc, argv, patterns, sizeof(patterns) / sizeof(patterns[0]));
}
