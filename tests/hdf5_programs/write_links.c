/* Patterns like those of write_patterns.c, with link classes of the program (H5Lregister,
 * H5Lcreate_ud). One class changes the reference count like a hard link, so that it keeps an object
 * without other links. Another class is a path. Some objects are kept by a reference count only.
 *
 *   write_links FOLDER PATTERN...
 */

#include "parallel_patterns.h"

enum { n_rows = 64, n_columns = 80, hard_class = 201, path_class = 202 };

/* --- a link class that stores an object's token or address, and counts references */

#if H5_VERSION_GE(1, 12, 0)
typedef H5O_token_t Place;
static Place place_of(hid_t object) {
  H5O_info2_t info;
  DO(H5Oget_info3(object, &info, H5O_INFO_BASIC));
  return info.token;
}
static unsigned count_of(hid_t object) {
  H5O_info2_t info;
  DO(H5Oget_info3(object, &info, H5O_INFO_BASIC));
  return info.rc;
}
static hid_t open_at(hid_t location, Place place) { return H5Oopen_by_token(location, place); }
#else
typedef haddr_t Place;
static Place place_of(hid_t object) {
  H5O_info_t info;
  DO(H5Oget_info1(object, &info));
  return info.addr;
}
static unsigned count_of(hid_t object) {
  H5O_info_t info;
  DO(H5Oget_info1(object, &info));
  return info.rc;
}
static hid_t open_at(hid_t location, Place place) { return H5Oopen_by_addr(location, place); }
#endif

static herr_t count(hid_t location, const void* data, size_t n_bytes, int change) {
  Place place;
  if (n_bytes != sizeof(place)) return -1;
  memcpy(&place, data, sizeof(place));
  hid_t object = open_at(location, place);
  if (object < 0) return -1;
  herr_t counted = change > 0 ? H5Oincr_refcount(object) : H5Odecr_refcount(object);
  H5Oclose(object);
  return counted;
}
static herr_t hard_create(const char* name, hid_t group, const void* data, size_t n_bytes,
                          hid_t list) {
  (void)name, (void)list;
  return count(group, data, n_bytes, 1);
}
static herr_t hard_delete(const char* name, hid_t file, const void* data, size_t n_bytes) {
  (void)name;
  return count(file, data, n_bytes, -1);
}
static hid_t hard_traverse(const char* name, hid_t group, const void* data, size_t n_bytes,
                           hid_t list, hid_t transfer_list) {
  Place place;
  (void)name, (void)list, (void)transfer_list;
  if (n_bytes != sizeof(place)) return -1;
  memcpy(&place, data, sizeof(place));
  return open_at(group, place);
}

static hid_t path_traverse(const char* name, hid_t group, const void* data, size_t n_bytes,
                           hid_t list, hid_t transfer_list) {
  (void)name, (void)n_bytes, (void)transfer_list;
  return H5Oopen(group, data, list);
}

static const H5L_class_t hard_link = {H5L_LINK_CLASS_T_VERS,
                                      (H5L_type_t)hard_class,
                                      "counts",
                                      hard_create,
                                      NULL,
                                      NULL,
                                      hard_traverse,
                                      hard_delete,
                                      NULL};
static const H5L_class_t path_link = {H5L_LINK_CLASS_T_VERS,
                                      (H5L_type_t)path_class,
                                      "path",
                                      NULL,
                                      NULL,
                                      NULL,
                                      path_traverse,
                                      NULL,
                                      NULL};

static void link_to(hid_t file, const char* name, hid_t object) {
  const Place place = place_of(object);
  DO(H5Lcreate_ud(file, name, (H5L_type_t)hard_class, &place, sizeof(place), H5P_DEFAULT,
                  H5P_DEFAULT));
}

/* --- datasets and groups that the links lead to */

static hid_t new_dataset(hid_t location, const char* name, int chunked) {
  const hsize_t extents[2] = {n_rows, n_columns};
  const hsize_t chunk[2] = {9, 50};
  hid_t space = space_of(2, extents, NULL);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  if (chunked) DO(H5Pset_chunk(list, 2, chunk));
  hid_t dataset = create(location, name, H5T_NATIVE_DOUBLE, space, list);
  DO(H5Pclose(list));
  DO(H5Sclose(space));
  return dataset;
}

static void write_half(hid_t dataset, int half, hid_t list) {
  const hsize_t n = n_rows / 2;
  const hsize_t first = first_row(n, rank);
  write_rows(dataset, (hsize_t)half * n + first, first_row(n, rank + 1) - first, n_columns, list);
}

static void check_all(hid_t dataset) {
  static double back[n_rows * n_columns];
  hid_t list = collective_list();
  DO(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, list, back));
  for (hsize_t i = 0; i < n_rows * n_columns; ++i) CHECK(back[i] == value_at(i));
  DO(H5Pclose(list));
}

static hid_t opened(hid_t location, const char* name) {
  hid_t dataset = H5Dopen2(location, name, H5P_DEFAULT);
  DO(dataset);
  return dataset;
}

static void name_again(hid_t file) {
  hid_t one = opened(file, "to one");
  hid_t group = H5Gopen2(file, "to group", H5P_DEFAULT);
  DO(group);
  DO(H5Olink(one, file, "named one", H5P_DEFAULT, H5P_DEFAULT));
  DO(H5Olink(group, file, "named group", H5P_DEFAULT, H5P_DEFAULT));
  DO(H5Dclose(one));
  DO(H5Gclose(group));
}

/* A dataset, and a group with a dataset, lose their names and are kept by links of the program's
 * class. They are written before, between flushes, and after, and once more in the file opened
 * again. */
static void counted(const char* path) {
  hid_t collective = collective_list();
  DO(H5Lregister(&hard_link));
  hid_t file = create_file(path);
  hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  hid_t one = new_dataset(file, "one", 1);
  hid_t two = new_dataset(group, "two", 0);
  hid_t gone = new_dataset(file, "gone", 1);
  hid_t kept = new_dataset(file, "kept", 0);
  link_to(file, "to one", one);
  link_to(file, "to group", group);
  link_to(file, "to gone", gone);
  CHECK(count_of(one) == 2);
  write_half(one, 0, collective);
  write_half(two, 0, H5P_DEFAULT);
  write_half(gone, 0, collective);
  write_half(kept, 0, collective);
  DO(H5Dclose(two));
  DO(H5Gclose(group));
  DO(H5Dclose(one));
  DO(H5Dclose(gone));
  DO(H5Ldelete(file, "one", H5P_DEFAULT));
  DO(H5Ldelete(file, "group", H5P_DEFAULT));
  DO(H5Ldelete(file, "gone", H5P_DEFAULT));
  DO(H5Ldelete(file, "to gone", H5P_DEFAULT));
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  one = opened(file, "to one");
  CHECK(count_of(one) == 1);
  two = opened(file, "to group/two");
  write_half(one, 1, H5P_DEFAULT);
  write_half(two, 1, collective);
  DO(H5Dclose(one));
  DO(H5Dclose(two));
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  one = opened(file, "to one");
  check_all(one);
  DO(H5Dclose(one));
  write_half(kept, 1, collective);
  DO(H5Dclose(kept));
  name_again(file);
  DO(H5Fclose(file));

  /* An earlier program has left them so: each has a name and a link of the program's class. */
  file = open_file(path, H5F_ACC_RDWR);
  kept = opened(file, "kept");
  link_to(file, "to kept", kept);
  DO(H5Dclose(kept));
  DO(H5Ldelete(file, "kept", H5P_DEFAULT));
  DO(H5Ldelete(file, "named one", H5P_DEFAULT));
  DO(H5Ldelete(file, "named group", H5P_DEFAULT));
  const char* names[3] = {"to one", "to group/two", "to kept"};
  for (int i = 0; i < 3; ++i) {
    one = opened(file, names[i]);
    check_all(one);
    write_half(one, i % 2, i == 0 ? collective : H5P_DEFAULT);
    DO(H5Dclose(one));
  }
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  /* Readers that do not know the link class need names. */
  name_again(file);
  kept = opened(file, "to kept");
  DO(H5Olink(kept, file, "named kept", H5P_DEFAULT, H5P_DEFAULT));
  DO(H5Dclose(kept));
  DO(H5Ldelete(file, "to one", H5P_DEFAULT));
  DO(H5Ldelete(file, "to group", H5P_DEFAULT));
  DO(H5Ldelete(file, "to kept", H5P_DEFAULT));
  DO(H5Fclose(file));
  DO(H5Lunregister((H5L_type_t)hard_class));
  DO(H5Pclose(collective));
}

/* Datasets are written, read, created and deleted through a link that is a path. The link is copied
 * and moved, too. */
static void by_path(const char* path) {
  static const char target[] = "/group/values";
  static const char to_group[] = "/group";
  hid_t collective = collective_list();
  DO(H5Lregister(&path_link));
  hid_t file = create_file(path);
  hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  DO(H5Lcreate_ud(file, "link", (H5L_type_t)path_class, target, sizeof(target), H5P_DEFAULT,
                  H5P_DEFAULT));
  DO(H5Lcreate_ud(file, "way", (H5L_type_t)path_class, to_group, sizeof(to_group), H5P_DEFAULT,
                  H5P_DEFAULT));
  DO(H5Dclose(new_dataset(file, "way/values", 1)));
  DO(H5Dclose(new_dataset(file, "way/deleted", 1)));
  hid_t dataset = opened(file, "link");
  write_half(dataset, 0, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  dataset = opened(file, "way/deleted");
  write_half(dataset, 0, H5P_DEFAULT);
  DO(H5Dclose(dataset));
  DO(H5Ldelete(file, "way/deleted", H5P_DEFAULT));
  DO(H5Lcopy(file, "link", group, "again", H5P_DEFAULT, H5P_DEFAULT));
  DO(H5Lmove(file, "link", file, "moved", H5P_DEFAULT, H5P_DEFAULT));
  dataset = opened(group, "again");
  write_half(dataset, 1, collective);
  DO(H5Dclose(dataset));
  dataset = opened(file, "moved");
  check_all(dataset);
  DO(H5Dclose(dataset));
  DO(H5Gclose(group));
  DO(H5Fclose(file));
  file = open_file(path, H5F_ACC_RDWR);
  dataset = opened(file, "way/again");
  check_all(dataset);
  write_half(dataset, 0, collective);
  DO(H5Dclose(dataset));
  /* Without their class, links fail and do no harm. */
  DO(H5Lunregister((H5L_type_t)path_class));
  H5E_auto2_t printer;
  void* data;
  DO(H5Eget_auto2(H5E_DEFAULT, &printer, &data));
  DO(H5Eset_auto2(H5E_DEFAULT, NULL, NULL));
  CHECK(H5Dopen2(file, "moved", H5P_DEFAULT) < 0);
  CHECK(H5Lcreate_ud(file, "more", (H5L_type_t)path_class, target, sizeof(target), H5P_DEFAULT,
                     H5P_DEFAULT) < 0);
  DO(H5Eset_auto2(H5E_DEFAULT, printer, data));
  dataset = opened(file, "group/values");
  check_all(dataset);
  DO(H5Dclose(dataset));
  DO(H5Fclose(file));
  DO(H5Pclose(collective));
}

/* A reference count keeps a dataset that has no link. */
static void without_links(const char* path) {
  hid_t file = create_file(path);
  hid_t dataset = new_dataset(file, "name", 1);
  const Place place = place_of(dataset);
  write_half(dataset, 0, H5P_DEFAULT);
  DO(H5Oincr_refcount(dataset));
  DO(H5Dclose(dataset));
  DO(H5Ldelete(file, "name", H5P_DEFAULT));
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  dataset = open_at(file, place);
  DO(dataset);
  write_half(dataset, 1, H5P_DEFAULT);
  DO(H5Olink(dataset, file, "name", H5P_DEFAULT, H5P_DEFAULT));
  DO(H5Dclose(dataset));
  DO(H5Fclose(file));
  /* Get the token or address in the file, which rank 0 has written. */
  file = open_file(path, H5F_ACC_RDWR);
  dataset = opened(file, "name");
  const Place place_in_file = place_of(dataset);
  DO(H5Dclose(dataset));
  DO(H5Fclose(file));
  /* An earlier program has left it so: with a name, and with one reference more. */
  file = open_file(path, H5F_ACC_RDWR);
  DO(H5Ldelete(file, "name", H5P_DEFAULT));
  dataset = open_at(file, place_in_file);
  DO(dataset);
  check_all(dataset);
  write_half(dataset, 0, H5P_DEFAULT);
  DO(H5Olink(dataset, file, "named", H5P_DEFAULT, H5P_DEFAULT));
  DO(H5Odecr_refcount(dataset));
  DO(H5Dclose(dataset));
  DO(H5Fclose(file));
}

/* Tailrace does not find such a dataset in a file that it opens: calls for its values fail, on all
 * ranks, and do no harm. This pattern is not for plain HDF5. */
static void unlinked(const char* path) {
  double value = 1;
  hid_t file = create_file(path);
  hid_t dataset = new_dataset(file, "name", 1);
  write_half(dataset, 0, H5P_DEFAULT);
  write_half(dataset, 1, H5P_DEFAULT);
  DO(H5Oincr_refcount(dataset));
  DO(H5Lregister(&hard_link));
  link_to(file, "link", dataset);
  DO(H5Dclose(dataset));
  DO(H5Ldelete(file, "name", H5P_DEFAULT));
  DO(H5Fclose(file));
  file = open_file(path, H5F_ACC_RDWR);
  dataset = opened(file, "link");
  H5E_auto2_t printer;
  void* data;
  DO(H5Eget_auto2(H5E_DEFAULT, &printer, &data));
  DO(H5Eset_auto2(H5E_DEFAULT, NULL, NULL));
  CHECK(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0);
  CHECK(H5Dread(dataset, H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, H5P_DEFAULT, &value) < 0);
  DO(H5Eset_auto2(H5E_DEFAULT, printer, data));
  DO(H5Olink(dataset, file, "named", H5P_DEFAULT, H5P_DEFAULT));
  DO(H5Ldelete(file, "link", H5P_DEFAULT));
  DO(H5Dclose(dataset));
  DO(H5Fclose(file));
  file = open_file(path, H5F_ACC_RDWR);
  dataset = opened(file, "named");
  check_all(dataset);
  DO(H5Odecr_refcount(dataset));
  DO(H5Dclose(dataset));
  DO(H5Fclose(file));
  DO(H5Lunregister((H5L_type_t)hard_class));
}

int main(int argc, char** argv) {
  static const Pattern patterns[] = {{"counted", counted},
                                     {"by_path", by_path},
                                     {"without_links", without_links},
                                     {"unlinked", unlinked}};
  return run_patterns(argc, argv, patterns, sizeof(patterns) / sizeof(patterns[0]));
}
