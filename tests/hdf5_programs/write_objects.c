/* Patterns like those of write_patterns.c, which open datasets in other ways than by names in a
 * file: from callbacks, by addresses, indices and references, from attributes, and through mounts
 * and links to other files. They also use committed types, and close files before or with their
 * objects.
 *
 *   write_objects FOLDER PATTERN...
 */

#include "parallel_patterns.h"

enum { n_rows = 48, n_columns = 60 };

static hid_t rows_space(void) {
  const hsize_t extents[2] = {n_rows, n_columns};
  return space_of(2, extents, NULL);
}

/* Create a dataset and write this rank's rows. */
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

/* --- callbacks: HDF5 creates the group's id */

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

/* --- by index, by address, by reference, by an id of the file that HDF5 returns */

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
    /* Rank 0 writes one more row through each id. */
    if (rank == 0) write_rows(opened[i], (hsize_t)(10 + i), 1, n_columns, H5P_DEFAULT);
    DO(H5Oclose(opened[i]));
  }
  hid_t twice = H5Freopen(file);
  DO(twice);
  /* Count the objects that are open through this id, as h5py does before it closes them. */
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

/* --- by an attribute's id, which represents the object that has the attribute */

static void of_attribute(const char* path) {
  hid_t file = create_file(path);
  hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  DO(group);
  write_attribute(group, "a", 1);
  hid_t attribute = H5Aopen(group, "a", H5P_DEFAULT);
  DO(attribute);
  write_new(attribute, "below", H5T_NATIVE_DOUBLE);
  CHECK(H5Lexists(group, "below", H5P_DEFAULT) > 0 && H5Lexists(file, "below", H5P_DEFAULT) == 0);
  hid_t dataset = H5Dopen2(attribute, "below", H5P_DEFAULT);
  DO(dataset);
  check_rows(dataset);
  DO(H5Dclose(dataset));
  hid_t same = H5Iget_file_id(attribute);
  CHECK(same == file);
  DO(H5Fclose(same));
  DO(H5Aclose(attribute));
  DO(H5Gclose(group));
  DO(H5Fclose(file));
}

/* --- callbacks run with the program's settings, such as its printer of errors */

static int has_printer(void) {
  H5E_auto2_t print = NULL;
  void* data = NULL;
  DO(H5Eget_auto2(H5E_DEFAULT, &print, &data));
  return print != NULL;
}

static herr_t count_printers(hid_t object, const char* name, const H5O_info_t* info, void* n) {
  (void)object;
  (void)name;
  (void)info;
  *(int*)n += has_printer();
  return 0;
}

static herr_t count_printers_of_links(hid_t group, const char* name, const H5L_info_t* info,
                                      void* n) {
  (void)group;
  (void)name;
  (void)info;
  *(int*)n += has_printer();
  return 0;
}

static void printers(const char* path) {
  hid_t file = create_file(path);
  write_new(file, "a", H5T_NATIVE_DOUBLE);
  int n_visited = 0;
  int n_links = 0;
#if H5_VERSION_GE(1, 12, 0)
  DO(H5Ovisit3(file, H5_INDEX_NAME, H5_ITER_INC, count_printers, &n_visited, H5O_INFO_BASIC));
#else
  DO(H5Ovisit2(file, H5_INDEX_NAME, H5_ITER_INC, count_printers, &n_visited, H5O_INFO_BASIC));
#endif
  DO(H5Literate(file, H5_INDEX_NAME, H5_ITER_INC, NULL, count_printers_of_links, &n_links));
  CHECK(n_visited == 2 && n_links == 1);
  DO(H5Fclose(file));
}

/* --- in another file, through a mount or an external link */

static void beside(const char* path, const char* end, char name[4200]) {
  snprintf(name, 4200, "%s.%s", path, end);
}

/* Check that the object's file is `name`, and not `by`, through which the object was opened. */
static void check_file(hid_t object, const char* name, hid_t by) {
  char found[4200] = "";
  hid_t file = H5Iget_file_id(object);
  DO(file);
  CHECK(file != by);
  DO(H5Fget_name(file, found, sizeof(found)));
  CHECK(strcmp(found, name) == 0);
  DO(H5Fclose(file));
}

static void mounted(const char* path) {
  char child_path[4200];
  beside(path, "child", child_path);
  hid_t file = create_file(path);
  hid_t child = create_file(child_path);
  write_new(child, "before", H5T_NATIVE_DOUBLE);
  hid_t group = H5Gcreate2(file, "m", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  DO(group);
  DO(H5Gclose(group));
  DO(H5Fmount(file, "m", child, H5P_DEFAULT));
  write_new(file, "m/through", H5T_NATIVE_DOUBLE);
  hid_t dataset = H5Dopen2(file, "m/through", H5P_DEFAULT);
  DO(dataset);
  check_rows(dataset);
  check_file(dataset, child_path, file);
  DO(H5Fflush(child, H5F_SCOPE_GLOBAL));
  FILE* flushed = fopen(child_path, "rb"); /* The flush has given the file its name. */
  CHECK(flushed != NULL);
  fclose(flushed);
  write_new(file, "m/flushed_before", H5T_NATIVE_DOUBLE);
  DO(H5Dclose(dataset));
  DO(H5Funmount(file, "m"));
  CHECK(H5Lexists(child, "through", H5P_DEFAULT) > 0);
  DO(H5Fclose(child));
  write_new(file, "after", H5T_NATIVE_DOUBLE);
  DO(H5Fclose(file));
}

/* Create a file, and another one that is mounted in it as "m". */
static hid_t mount(const char* path, const char* end, hid_t* child) {
  char child_path[4200];
  beside(path, end, child_path);
  hid_t file = create_file(path);
  *child = create_file(child_path);
  write_new(*child, "before", H5T_NATIVE_DOUBLE);
  DO(H5Gclose(H5Gcreate2(file, "m", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)));
  DO(H5Fmount(file, "m", *child, H5P_DEFAULT));
  write_new(file, "m/through", H5T_NATIVE_DOUBLE);
  return file;
}

/* The outer file is closed first: the id of the mounted file leads to both. */
static void outer_goes_first(const char* path) {
  hid_t child;
  hid_t file = mount(path, "child", &child);
  DO(H5Fclose(file));
  write_new(child, "outer_late", H5T_NATIVE_DOUBLE);
  write_new(child, "m/late", H5T_NATIVE_DOUBLE);
  DO(H5Fclose(child));
  file = open_file(path, H5F_ACC_RDWR);
  write_new(file, "m/own", H5T_NATIVE_DOUBLE);
  DO(H5Fclose(file));
}

/* The mounted file is closed first: it stays usable until H5Funmount or the outer file's close. */
static void inner_goes_first(const char* path) {
  hid_t child;
  hid_t file = mount(path, "child", &child);
  DO(H5Fclose(child));
  write_new(file, "m/late", H5T_NATIVE_DOUBLE);
  hid_t dataset = H5Dopen2(file, "m/late", H5P_DEFAULT);
  DO(dataset);
  check_rows(dataset);
  DO(H5Dclose(dataset));
  DO(H5Fclose(file));
}

/* Unmount a file by a name that leads through another mounted file. */
static void unmounted_last(const char* path) {
  hid_t child;
  hid_t file = mount(path, "child", &child);
  char inmost_path[4200];
  beside(path, "inmost", inmost_path);
  hid_t inmost = create_file(inmost_path);
  DO(H5Gclose(H5Gcreate2(file, "m/n", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)));
  DO(H5Fmount(file, "m/n", inmost, H5P_DEFAULT));
  DO(H5Fclose(inmost));
  DO(H5Fclose(child));
  write_new(file, "m/n/inmost", H5T_NATIVE_DOUBLE);
  write_new(file, "m/late", H5T_NATIVE_DOUBLE);
  DO(H5Funmount(file, "m/n"));
  inmost = open_file(inmost_path, H5F_ACC_RDWR); /* H5Funmount has closed it. */
  write_new(inmost, "again", H5T_NATIVE_DOUBLE);
  DO(H5Fclose(inmost));
  DO(H5Funmount(file, "m"));
  write_new(file, "after", H5T_NATIVE_DOUBLE);
  DO(H5Fclose(file));
}

/* Unmount by the inner file's id, when the outer file has no id left; HDF5 closes it with the last
 * one. */
static void unmounted_by_inner(const char* path) {
  hid_t child;
  hid_t file = mount(path, "child", &child);
  DO(H5Fclose(file));
  write_new(child, "outer_late", H5T_NATIVE_DOUBLE);
  DO(H5Funmount(child, "m"));
  write_new(child, "inner_late", H5T_NATIVE_DOUBLE);
  DO(H5Fclose(child));
  DO(H5close());
}

/* MPI_Finalize closes mounted files, independent of the order of their creation. */
static void mounted_stays(const char* path) {
  hid_t child;
  hid_t file = mount(path, "child", &child);
  char outer_path[4200];
  beside(path, "outer", outer_path);
  hid_t outer = create_file(outer_path);
  DO(H5Gclose(H5Gcreate2(outer, "o", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)));
  DO(H5Fmount(outer, "o", file, H5P_DEFAULT));
  write_new(outer, "o/m/deep", H5T_NATIVE_DOUBLE);
  DO(H5Fclose(file));
}

/* Mount a file that Tailrace does not serve, since it is in each rank's memory. */
static hid_t mount_memory(const char* path, hid_t* file) {
  *file = create_file(path);
  hid_t list = H5Pcreate(H5P_FILE_ACCESS);
  DO(H5Pset_fapl_core(list, 65536, 0));
  DO(H5Pset_fclose_degree(list, H5F_CLOSE_SEMI));
  hid_t memory = H5Fcreate("of this rank", H5F_ACC_TRUNC, H5P_DEFAULT, list);
  DO(memory);
  DO(H5Pclose(list));
  write_attribute(memory, "of_memory", 3);
  DO(H5Gclose(H5Gcreate2(*file, "m", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT)));
  DO(H5Fmount(*file, "m", memory, H5P_DEFAULT));
  CHECK(H5Aexists_by_name(*file, "m", "of_memory", H5P_DEFAULT) > 0);
  return memory;
}

static void unserved_goes_first(const char* path) {
  hid_t file;
  DO(H5Fclose(mount_memory(path, &file)));
  write_new(file, "values", H5T_NATIVE_DOUBLE);
  DO(H5Fclose(file));
}

static void unserved_goes_last(const char* path) {
  hid_t file;
  hid_t memory = mount_memory(path, &file);
  DO(H5Fclose(file));
  write_new(memory, "values", H5T_NATIVE_DOUBLE);
  DO(H5Fclose(memory));
}

/* Open external links with an access list that chooses MPI-IO for their files. */
static void linked(const char* path) {
  char target_path[4200];
  beside(path, "target", target_path);
  hid_t target = create_file(target_path);
  write_new(target, "before", H5T_NATIVE_DOUBLE);
  DO(H5Fclose(target));
  hid_t file = create_file(path);
  DO(H5Lcreate_external(target_path, "/", file, "ext", H5P_DEFAULT, H5P_DEFAULT));
  hid_t by_mpio = mpio_list();
  hid_t access = H5Pcreate(H5P_DATASET_ACCESS);
  DO(H5Pset_elink_fapl(access, by_mpio));
  hid_t link_access = H5Pcreate(H5P_LINK_ACCESS);
  DO(H5Pset_elink_fapl(link_access, by_mpio));
  hid_t dataset = H5Dopen2(file, "ext/before", access);
  DO(dataset);
  check_rows(dataset);
  check_file(dataset, target_path, file);
  DO(H5Dclose(dataset));
  hid_t space = rows_space();
  hsize_t first = first_row(n_rows, rank);
  hsize_t n = first_row(n_rows, rank + 1) - first;
  dataset =
      H5Dcreate2(file, "ext/through", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, H5P_DEFAULT, access);
  DO(dataset);
  write_rows(dataset, first, n, n_columns, H5P_DEFAULT);
  check_file(dataset, target_path, file);
  DO(H5Dclose(dataset));
  hid_t group = H5Gopen2(file, "ext", link_access);
  DO(group);
  write_new(group, "by_group", H5T_NATIVE_DOUBLE);
  DO(H5Gclose(group));
  write_new(file, "after", H5T_NATIVE_DOUBLE);
  DO(H5Sclose(space));
  DO(H5Pclose(link_access));
  DO(H5Pclose(access));
  DO(H5Pclose(by_mpio));
  DO(H5Fclose(file));
}

/* --- ids that are not transfer property lists */

static void wrong_lists(const char* path) {
  hid_t file = create_file(path);
  write_new(file, "a", H5T_NATIVE_DOUBLE);
  hid_t dataset = H5Dopen2(file, "a", H5P_DEFAULT);
  hid_t list = mpio_list();
  const hid_t wrong[] = {dataset, list};
  double values[n_rows * n_columns] = {0};
  for (int i = 0; i < 2; ++i) {
    herr_t done[2];
    H5E_BEGIN_TRY {
      done[0] = H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, wrong[i], values);
      done[1] = H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, wrong[i], values);
    }
    H5E_END_TRY
    CHECK(done[0] < 0 && done[1] < 0);
  }
  DO(H5Pclose(list));
  DO(H5Dclose(dataset));
  DO(H5Fclose(file));
}

/* --- committed types, copies, links that are deleted or moved */

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
  /* Plain HDF5 copies the rows that are in the file, so all ranks must have written theirs. */
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

static hid_t create_with(const char* path, H5F_close_degree_t degree) {
  hid_t list = mpio_list();
  DO(H5Pset_fclose_degree(list, degree));
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
  DO(file);
  DO(H5Pclose(list));
  return file;
}

static herr_t try_close(hid_t file) {
  herr_t done;
  H5E_BEGIN_TRY { done = H5Fclose(file); }
  H5E_END_TRY
  return done;
}

/* A group that outlives the id of its file still leads to the file. */
static void outlives(const char* path) {
  hid_t file = create_with(path, H5F_CLOSE_WEAK);
  hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  DO(group);
  DO(H5Fclose(file));
  write_new(group, "late", H5T_NATIVE_DOUBLE);
  char name[4200] = "";
  hid_t same = H5Iget_file_id(group);
  DO(same);
  DO(H5Fget_name(same, name, sizeof(name)));
  CHECK(strcmp(name, path) == 0);
  CHECK(H5Fget_obj_count(same, H5F_OBJ_ALL) == 2 && H5Fget_obj_count(same, H5F_OBJ_FILE) == 1);
  write_new(same, "later", H5T_NATIVE_DOUBLE);
  DO(H5Fclose(same));
  DO(H5Gclose(group));
}

/* A file that HDF5 refuses to close does not change, and can be closed later. */
static void refuses(const char* path) {
  hid_t file = create_with(path, H5F_CLOSE_SEMI);
  hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  DO(group);
  CHECK(try_close(file) < 0);
  CHECK(H5Iis_valid(file) > 0 && H5Fget_obj_count(file, H5F_OBJ_ALL) == 2);
  write_new(group, "a", H5T_NATIVE_DOUBLE);
  write_new(file, "b", H5T_NATIVE_DOUBLE);
  DO(H5Gclose(group));
  DO(H5Fclose(file));
  CHECK(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) == 0);
}

/* Only the last rank has an open object, and only there H5Fclose fails. */
static void one_refuses(const char* path) {
  hid_t file = create_with(path, H5F_CLOSE_SEMI);
  hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  DO(group);
  write_new(group, "a", H5T_NATIVE_DOUBLE);
  const int refused = rank == n_ranks - 1;
  if (!refused) DO(H5Gclose(group));
  CHECK((try_close(file) < 0) == refused);
  if (!refused) return;
  DO(H5Gclose(group));
  DO(H5Fclose(file));
}

/* H5F_CLOSE_STRONG closes only objects that were opened by this id of the file. */
static void closes_its_own(const char* path) {
  hid_t file = create_with(path, H5F_CLOSE_STRONG);
  hid_t second = H5Freopen(file);
  DO(second);
  hid_t group = H5Gcreate2(file, "g", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  DO(group);
  hid_t by_second = H5Gopen2(second, "g", H5P_DEFAULT);
  DO(by_second);
  DO(H5Fclose(file));
  CHECK(H5Iis_valid(group) == 0 && H5Iis_valid(by_second) > 0);
  write_new(by_second, "a", H5T_NATIVE_DOUBLE);
  DO(H5Gclose(by_second));
  DO(H5Fclose(second));
  CHECK(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) == 0);
}

/* Opening and closing a file repeatedly leaves no open ids. */
static void reopens(const char* path) {
  hid_t file = create_file(path);
  write_new(file, "a", H5T_NATIVE_DOUBLE);
  const unsigned all = H5F_OBJ_ALL;
  ssize_t n_before = 0;
  for (int i = 0; i < 20; ++i) {
    hid_t again = i % 2 == 0 ? H5Freopen(file) : open_file(path, H5F_ACC_RDWR);
    DO(again);
    hid_t dataset = H5Dopen2(again, "a", H5P_DEFAULT);
    DO(dataset);
    hid_t same = H5Iget_file_id(dataset);
    CHECK(same == again);
    DO(H5Fclose(same));
    DO(H5Dclose(dataset));
    DO(H5Fclose(again));
    CHECK(H5Fget_obj_count(file, all) == 1);
    const ssize_t n = H5Fget_obj_count(all, all);
    if (i < 2) n_before = n;
    CHECK(n > 0 && n == n_before);
  }
  DO(H5Fclose(file));
  CHECK(H5Fget_obj_count(all, all) == 0);
}

/* Counts of a file's open objects have only the program's. With a VOL connector, counts over all
 * files may have the connector's ids, too. */
static void counts(const char* path) {
  hid_t file = create_file(path);
  write_new(file, "a", H5T_NATIVE_DOUBLE);
  hid_t dataset = H5Dopen2(file, "a", H5P_DEFAULT);
  DO(dataset);
  const unsigned types[] = {H5F_OBJ_ALL,   H5F_OBJ_ALL | H5F_OBJ_LOCAL,
                            H5F_OBJ_FILE,  H5F_OBJ_DATASET,
                            H5F_OBJ_GROUP, H5F_OBJ_DATATYPE};
  const ssize_t expected[] = {2, 2, 1, 1, 0, 0};
  const int by_connector = getenv("HDF5_VOL_CONNECTOR") != NULL;
  for (int i = 0; i < 6; ++i) {
    hid_t ids[8];
    const ssize_t of_all = H5Fget_obj_count(H5F_OBJ_ALL, types[i]);
    CHECK(H5Fget_obj_count(file, types[i]) == expected[i]);
    CHECK(by_connector ? of_all >= expected[i] : of_all == expected[i]);
    CHECK(H5Fget_obj_ids(file, types[i], 8, ids) == expected[i]);
    for (ssize_t k = 0; k < expected[i]; ++k) CHECK(ids[k] == file || ids[k] == dataset);
  }
  DO(H5Dclose(dataset));
  DO(H5Fclose(file));
  CHECK(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) == 0);
}

/* HDF5 ends and starts again. MPI_Finalize closes the objects that are open then. */
static void begins_anew(const char* path) {
  char again[4200];
  beside(path, "again", again);
  write_new(create_file(path), "a", H5T_NATIVE_DOUBLE);
  DO(H5close());
  DO(H5open());
  write_new(create_file(again), "b", H5T_NATIVE_DOUBLE);
}

/* Only the end of HDF5 closes objects. */
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
                              {"of_attribute", of_attribute},
                              {"printers", printers},
                              {"mounted", mounted},
                              {"outer_goes_first", outer_goes_first},
                              {"inner_goes_first", inner_goes_first},
                              {"unmounted_last", unmounted_last},
                              {"unmounted_by_inner", unmounted_by_inner},
                              {"mounted_stays", mounted_stays},
                              {"unserved_goes_first", unserved_goes_first},
                              {"unserved_goes_last", unserved_goes_last},
                              {"linked", linked},
                              {"wrong_lists", wrong_lists},
                              {"types", types},
                              {"closes_all", closes_all},
                              {"closes_its_own", closes_its_own},
                              {"outlives", outlives},
                              {"refuses", refuses},
                              {"one_refuses", one_refuses},
                              {"reopens", reopens},
                              {"counts", counts},
                              {"begins_anew", begins_anew},
                              {"ends_at_once", ends_at_once}};
  return run_patterns(argc, argv, patterns, sizeof(patterns) / sizeof(patterns[0]));
}
