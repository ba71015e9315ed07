/* Program that writes fields, and datasets that say where and when the fields hold.
 * tests/python/test_hdf5_roles.py runs it under a bound for all datasets.
 *
 *   write_roles FOLDER climate|after|grown|h5md|athena|late
 *
 * All datasets have at least 16 KiB, so that all ranks write them in chunks.
 */

#include "parallel_patterns.h"

enum { ROWS = 96, COLUMNS = 120, N = ROWS * COLUMNS };

static void text_attribute(hid_t object, const char* name, const char* text) {
  hid_t space = H5Screate(H5S_SCALAR);
  hid_t type = H5Tcopy(H5T_C_S1);
  DO(H5Tset_size(type, strlen(text)));
  hid_t attribute = H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
  DO(attribute);
  DO(H5Awrite(attribute, type, text));
  DO(H5Aclose(attribute));
  DO(H5Tclose(type));
  DO(H5Sclose(space));
}

static hid_t group_of(hid_t location, const char* name) {
  hid_t group = H5Gcreate2(location, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  DO(group);
  return group;
}

/* Create a dataset of doubles, of two dimensions or of one. */
static hid_t create_array(hid_t location, const char* name, int n_dimensions) {
  const hsize_t extents[2] = {n_dimensions == 2 ? ROWS : N, COLUMNS};
  hid_t space = space_of(n_dimensions, extents, NULL);
  hid_t dataset = create(location, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT);
  DO(H5Sclose(space));
  return dataset;
}

static void fill(hid_t dataset, int n_dimensions, hid_t list) {
  const hsize_t n_rows = n_dimensions == 2 ? ROWS : N;
  const hsize_t first = first_row(n_rows, rank);
  write_rows(dataset, first, first_row(n_rows, rank + 1) - first, N / n_rows, list);
}

/* Create, write and close a dataset with up to one attribute. */
static void write_array(hid_t location, const char* name, int n_dimensions, const char* attribute,
                        const char* text) {
  hid_t list = collective_list();
  hid_t dataset = create_array(location, name, n_dimensions);
  if (attribute != NULL) text_attribute(dataset, attribute, text);
  fill(dataset, n_dimensions, list);
  DO(H5Dclose(dataset));
  DO(H5Pclose(list));
}

/* Attributes are set before the values are written, by the names of no rule. */
static void climate(const char* path) {
  hid_t file = create_file(path);
  write_array(file, "north", 2, "units", "degrees_north");
  write_array(file, "east", 2, "units", "degrees_east");
  write_array(file, "when", 1, "units", "days since 2000-01-01");
  write_array(file, "land_mask", 2, NULL, NULL);
  write_array(file, "particle_id", 1, NULL, NULL);
  write_array(file, "weights", 1, NULL, NULL);
  write_array(file, "corners", 2, NULL, NULL);
  write_array(file, "rho", 2, "units", "kg m-3");
  write_array(file, "theta", 2, "coordinates", "corners");
  DO(H5Fclose(file));
}

/* Attributes are set after H5Dwrite; the file is flushed by H5Fclose. */
static void after(const char* path) {
  hid_t file = create_file(path);
  hid_t list = collective_list();
  hid_t north = create_array(file, "north", 2);
  hid_t rho = create_array(file, "rho", 2);
  fill(north, 2, list);
  fill(rho, 2, list);
  text_attribute(north, "units", "degrees_north");
  text_attribute(rho, "units", "kg m-3");
  DO(H5Dclose(north));
  DO(H5Dclose(rho));
  DO(H5Pclose(list));
  DO(H5Fclose(file));
}

/* The first flush comes before the attribute. */
static void late(const char* path) {
  hid_t file = create_file(path);
  hid_t list = collective_list();
  hid_t north = create_array(file, "north", 2);
  fill(north, 2, list);
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  text_attribute(north, "units", "degrees_north");
  fill(north, 2, list);
  DO(H5Dclose(north));
  DO(H5Pclose(list));
  DO(H5Fclose(file));
}

static void append(hid_t file, const char* name, hsize_t step, hid_t list) {
  const hsize_t extents[2] = {(step + 1) * ROWS, COLUMNS};
  hid_t dataset = H5Dopen2(file, name, H5P_DEFAULT);
  DO(dataset);
  DO(H5Dset_extent(dataset, extents));
  const hsize_t first = first_row(ROWS, rank);
  write_rows(dataset, step * ROWS + first, first_row(ROWS, rank + 1) - first, COLUMNS, list);
  DO(H5Dclose(dataset));
}

/* Two datasets grow by a step; the file is closed, opened, and they grow by another. */
static void grown(const char* path) {
  const char* const names[] = {"north", "rho"};
  const hsize_t extents[2] = {0, COLUMNS};
  const hsize_t most[2] = {H5S_UNLIMITED, COLUMNS};
  const hsize_t chunk[2] = {ROWS / 2, COLUMNS};
  hid_t list = collective_list();
  hid_t file = create_file(path);
  hid_t space = space_of(2, extents, most);
  hid_t chunked = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_chunk(chunked, 2, chunk));
  for (int i = 0; i < 2; ++i) {
    hid_t dataset = create(file, names[i], H5T_NATIVE_DOUBLE, space, chunked);
    text_attribute(dataset, "units", i == 0 ? "degrees_north" : "kg m-3");
    DO(H5Dclose(dataset));
    append(file, names[i], 0, list);
  }
  DO(H5Pclose(chunked));
  DO(H5Sclose(space));
  DO(H5Fclose(file));
  file = open_file(path, H5F_ACC_RDWR);
  for (int i = 0; i < 2; ++i) append(file, names[i], 1, list);
  DO(H5Fclose(file));
  DO(H5Pclose(list));
}

/* The names of H5MD (nongnu.org/h5md): the group names the quantity. */
static void h5md(const char* path) {
  hid_t file = create_file(path);
  hid_t marker = group_of(file, "h5md");
  hid_t particles = group_of(file, "particles");
  hid_t all = group_of(particles, "all");
  const char* const names[] = {"position", "velocity", "force", "mass", "id"};
  for (int i = 0; i < 5; ++i) {
    hid_t group = group_of(all, names[i]);
    write_array(group, "value", 2, NULL, NULL);
    write_array(group, "time", 1, NULL, NULL);
    DO(H5Gclose(group));
  }
  DO(H5Gclose(all));
  DO(H5Gclose(particles));
  DO(H5Gclose(marker));
  DO(H5Fclose(file));
}

/* The names of Athena++: grids per block, and the variables of all. */
static void athena(const char* path) {
  const char* const names[] = {"x1f", "x2f", "x1v", "Levels", "LogicalLocations", "prim", "B"};
  hid_t file = create_file(path);
  write_attribute(file, "RootGridX1", 1);
  for (int i = 0; i < 7; ++i) write_array(file, names[i], 2, NULL, NULL);
  DO(H5Fclose(file));
}

int main(int argc, char** argv) {
  const Pattern patterns[] = {{"climate", climate}, {"after", after},   {"grown", grown},
                              {"h5md", h5md},       {"athena", athena}, {"late", late}};
  return run_patterns(argc, argv, patterns, (int)(sizeof(patterns) / sizeof(patterns[0])));
}
