/* As write_patterns.c, with datasets that are reached in other ways than by their names in a file:
 * from callbacks, by addresses, indices and references, with committed types, and files that are
 * closed before or with their objects.
 *
 *   write_objects FOLDER PATTERN...
 */

#include "parallel_patterns.h"

enum { n_rows = 48, n_columns = 60 };

static hid_t rows_space(void) {
  const hsize_t extents[2] = {n_rows, n_columns};
  return space_of(2, extents, NULL);
}

/* This rank's rows of a new dataset. */
static void write_new(hid_t location, const char* name, hid_t type) {
  hid_t space = rows_space();
  hid_t dataset = create(location, name, type, space, H5P_DEFAULT);
  hsize_t first = first_row(n_rows, rank);
  write_rows(dataset, first, first_row(n_rows, rank + 1) - first, n_columns, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  DO(H5Sclose(space));
}

static void check_rows(hid_t dataset) {
  double back[n_columns];
  hsize_t own = first_row(n_rows, rank);
  hid_t memory;
  hid_t row = rows_of(dataset, own, 1, &memory);
  DO(H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, row, H5P_DEFAULT, back));
  CHECK(back[0] == value_at(own * n_columns) && back[7] == value_at(own * n_columns + 7));
  DO(H5Sclose(row));
  DO(H5Sclose(memory));
}

/* --- callbacks: HDF5 makes the group's id */

static herr_t below_each(hid_t group, const char* name, const H5L_info_t* info, void* data) {
  char below[64];
  (void)info;
  ++*(int*)data;
  snprintf(below, sizeof(below), "%s/made", name);
  write_new(group, below, H5T_NATIVE_DOUBLE);
  hid_t file = H5Iget_file_id(group);
  DO(file);
  DO(H5Lexists(file, "values", H5P_DEFAULT));
  DO(H5Fclose(file));
  return 0;
}

static herr_t count_objects(hid_t object, const char* name, const H5O_info_t* info, void* data) {
  (void)info;
  hid_t opened = H5Oopen(object, name, H5P_DEFAULT);
  DO(opened);
  if (H5Iget_type(opened) == H5I_DATASET) check_rows(opened);
  DO(H5Oclose(opened));
  ++*(int*)data;
  return 0;
}

static herr_t count_attributes(hid_t object, const char* name, const H5A_info_t* info, void* data) {
  (void)info;
  hid_t attribute = H5Aopen(object, name, H5P_DEFAULT);
  int value = 0;
  DO(attribute);
  DO(H5Aread(attribute, H5T_NATIVE_INT, &value));
  DO(H5Aclose(attribute));
  *(int*)data += value;
  return 0;
}

static void callbacks(const char* path) {
  hid_t file = create_file(path);
  write_new(file, "values", H5T_NATIVE_DOUBLE);
  hid_t parts = H5Gcreate2(file, "parts", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  DO(parts);
  for (int i = 0; i < 3; ++i) {
    char name[8];
    snprintf(name, sizeof(name), "p%d", i);
    DO(H5Gclose(H5Gcreate2(parts, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)));
    write_attribute(parts, name, i + 1);
  }
  int n = 0;
  DO(H5Literate(parts, H5_INDEX_NAME, H5_ITER_INC, NULL, below_each, &n));
  CHECK(n == 3);
  int n_objects = 0;
#if H5_VERSION_GE(1, 12, 0)
  DO(H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, count_objects, &n_objects, H5O_INFO_BASIC));
#else
  DO(H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, count_objects, &n_objects, H5O_INFO_BASIC));
#endif
  CHECK(n_objects == 9);
  int sum = 0;
  DO(H5Aiterate2(parts, H5_INDEX_NAME, H5_ITER_INC, NULL, count_attributes, &sum));
  CHECK(sum == 6);
  DO(H5Gclose(parts));
  DO(H5Fclose(file));
}

/* --- by index, by address, by reference, by an id of the file that HDF5 gives */

static void reached(const char* path) {
  hid_t file = create_file(path);
  hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  DO(group);
  write_new(group, "a", H5T_NATIVE_DOUBLE);
  write_new(group, "b", H5T_NATIVE_FLOAT);
  DO(H5Lcreate_hard(group, "a", file, "hard", H5P_DEFAULT, H5P_DEFAULT));
  DO(H5Lcreate_soft("/g/b", file, "soft", H5P_DEFAULT, H5P_DEFAULT));
  hid_t opened[4];
  opened[0] = H5Oopen_by_idx(file, "g", H5_INDEX_NAME, H5_ITER_INC, 0, H5P_DEFAULT);
  opened[1] = H5Dopen2(file, "soft", H5P_DEFAULT);
  hobj_ref_t reference;
  DO(H5Rcreate(&reference, file, "hard", H5R_OBJECT, H5I_INVALID_HID));
  opened[2] = H5Rdereference2(file, H5P_DEFAULT, H5R_OBJECT, &reference);
#if H5_VERSION_GE(1, 12, 0)
  H5O_info2_t info;
  DO(H5Oget_info_by_name3(file, "g/a", &info, H5O_INFO_BASIC, H5P_DEFAULT));
  opened[3] = H5Oopen_by_token(file, info.token);
#else
  H5O_info_t info;
  DO(H5Oget_info_by_name2(file, "g/a", &info, H5O_INFO_BASIC, H5P_DEFAULT));
  opened[3] = H5Oopen_by_addr(file, info.addr);
#endif
  for (int i = 0; i < 4; ++i) {
    DO(opened[i]);
    hid_t same = H5Iget_file_id(opened[i]);
    CHECK(same == file);
    DO(H5Fclose(same));
    if (i != 1) check_rows(opened[i]);
    /* One row more, by each id; only by rank 0. */
    if (rank == 0) write_rows(opened[i], (hsize_t)(10 + i), 1, n_columns, H5P_DEFAULT);
    DO(H5Oclose(opened[i]));
  }
  hid_t twice = H5Freopen(file);
  DO(twice);
  /* What is open by this very id, as h5py asks before it closes all of it. */
  hid_t same = H5Iget_file_id(file);
  CHECK(same == file && H5Iget_ref(file) == 2);
  CHECK(H5Fget_obj_count(file, H5F_OBJ_FILE | H5F_OBJ_LOCAL) == 1);
  hid_t listed[2] = {H5I_INVALID_HID, H5I_INVALID_HID};
  CHECK(H5Fget_obj_ids(file, H5F_OBJ_FILE | H5F_OBJ_LOCAL, 2, listed) == 1 && listed[0] == file);
  CHECK(H5Fget_obj_count(file, H5F_OBJ_FILE | H5F_OBJ_GROUP | H5F_OBJ_LOCAL) == 2);
  DO(H5Fclose(same));
  write_new(twice, "by_second_id", H5T_NATIVE_DOUBLE);
  DO(H5Fclose(twice));
  DO(H5Oset_comment(group, "two fields"));
  char comment[32] = "";
  DO(H5Oget_comment(group, comment, sizeof(comment)));
  CHECK(strcmp(comment, "two fields") == 0);
  DO(H5Gclose(group));
  DO(H5Fclose(file));
}

/* --- committed types, copies, links that go */

static void types(const char* path) {
  hid_t file = create_file(path);
  hid_t type = H5Tcopy(H5T_IEEE_F32BE);
  DO(H5Tcommit2(file, "big", type, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  write_attribute(type, "of_type", 5);
  write_new(file, "by_committed", type);
  DO(H5Tclose(type));
  hid_t named = H5Topen2(file, "big", H5P_DEFAULT);
  DO(named);
  write_new(file, "by_opened", named);
  hid_t dataset = H5Dopen2(file, "by_opened", H5P_DEFAULT);
  hid_t back = H5Dget_type(dataset);
  CHECK(H5Tcommitted(back) > 0 && H5Tequal(back, named) > 0);
  DO(H5Tclose(back));
  DO(H5Dclose(dataset));
  DO(H5Tclose(named));
  /* Plain HDF5 copies what is there: all ranks' rows must be. */
  MPI_Barrier(MPI_COMM_WORLD);
  DO(H5Ocopy(file, "by_opened", file, "copied", H5P_DEFAULT, H5P_DEFAULT));
  write_new(file, "goes", H5T_NATIVE_DOUBLE);
  DO(H5Ldelete(file, "goes", H5P_DEFAULT));
  DO(H5Lmove(file, "by_committed", file, "moved", H5P_DEFAULT, H5P_DEFAULT));
  DO(H5Fclose(file));
}

/* --- closing: all objects with the file, or the file with the last of them */

static void closes_all(const char* path) {
  hid_t list = mpio_list();
  DO(H5Pset_fclose_degree(list, H5F_CLOSE_STRONG));
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
  DO(file);
  DO(H5Pclose(list));
  hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  DO(group);
  write_new(group, "a", H5T_NATIVE_DOUBLE);
  hid_t dataset = H5Dopen2(group, "a", H5P_DEFAULT);
  DO(dataset);
  DO(H5Fclose(file));
  CHECK(H5Iis_valid(file) == 0 && H5Iis_valid(dataset) == 0 && H5Iis_valid(group) == 0);
}

/* Nothing is closed but by the end of HDF5. */
static void ends_at_once(const char* path) {
  hid_t file = create_file(path);
  write_new(file, "a", H5T_NATIVE_DOUBLE);
  hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  DO(group);
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  write_new(group, "b", H5T_NATIVE_DOUBLE);
  DO(H5close());
}

int main(int argc, char** argv) {
  const Pattern patterns[] = {{"callbacks", callbacks},
                              {"reached", reached},
                              {"types", types},
                              {"closes_all", closes_all},
                              {"ends_at_once", ends_at_once}};
  return run_patterns(argc, argv, patterns, sizeof(patterns) / sizeof(patterns[0]));
}
