/* Patterns like those of write_patterns.c, with calls of HDF5 1.14: several datasets in one call,
 * and asynchronous calls. With an older HDF5 the program does nothing, and its exit status is 3.
 *
 *   write_later_calls FOLDER PATTERN...
 */

#include "parallel_patterns.h"

#if H5_VERSION_GE(1, 14, 0)

enum { n_fields = 4, n_rows = 60, n_columns = 90 };

/* Arguments of one call: this rank's rows of every dataset. */
typedef struct {
  hid_t datasets[n_fields];
  hid_t types[n_fields];
  hid_t memory[n_fields];
  hid_t rows[n_fields];
  double* values[n_fields];
} Lists;

static hid_t field_of(hid_t file, int i, hid_t space) {
  char name[16];
  hid_t dataset;
  const hsize_t chunk[2] = {11, 40};
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  if (i % 2 == 1) DO(H5Pset_chunk(list, 2, chunk));
  snprintf(name, sizeof(name), "field_%d", i);
  dataset = create(file, name, i == 2 ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE, space, list);
  DO(H5Pclose(list));
  return dataset;
}

static void begin_lists(Lists* lists, hsize_t first, hsize_t n) {
  for (int i = 0; i < n_fields; ++i) {
    lists->types[i] = H5T_NATIVE_DOUBLE;
    lists->rows[i] = rows_of(lists->datasets[i], first, n, &lists->memory[i]);
    lists->values[i] = malloc((n * n_columns + 1) * sizeof(double));
    for (hsize_t at = 0; at < n * n_columns; ++at) {
      lists->values[i][at] = value_at(first * n_columns + at) + 1000.0 * i;
    }
  }
}

static void end_lists(Lists* lists) {
  for (int i = 0; i < n_fields; ++i) {
    DO(H5Sclose(lists->rows[i]));
    DO(H5Sclose(lists->memory[i]));
    free(lists->values[i]);
  }
}

static void write_lists(const Lists* lists, size_t n, hid_t list) {
  Lists given = *lists;
  DO(H5Dwrite_multi(n, given.datasets, given.types, given.memory, given.rows, list,
                    (const void**)given.values));
}

static void check_all(const Lists* lists, hid_t list) {
  hid_t all[n_fields];
  void* into[n_fields];
  Lists given = *lists;
  for (int i = 0; i < n_fields; ++i) {
    all[i] = H5S_ALL;
    into[i] = calloc(n_rows * n_columns, sizeof(double));
  }
  DO(H5Dread_multi(n_fields, given.datasets, given.types, all, all, list, into));
  for (int i = 0; i < n_fields; ++i) {
    for (int at = 0; at < n_rows * n_columns; ++at) {
      const double wanted = value_at((hsize_t)at) + 1000.0 * i;
      CHECK(((double*)into[i])[at] == (i == 2 ? (double)(float)wanted : wanted));
    }
    free(into[i]);
  }
}

/* Write the first half of the rows collectively, the second one independently; all ranks read. */
static void multi(const char* path) {
  const hsize_t extents[2] = {n_rows, n_columns};
  hid_t file = create_file(path);
  hid_t space = space_of(2, extents, NULL);
  hid_t collective = collective_list();
  Lists lists;
  for (int i = 0; i < n_fields; ++i) lists.datasets[i] = field_of(file, i, space);
  hsize_t first = first_row(n_rows / 2, rank);
  begin_lists(&lists, first, first_row(n_rows / 2, rank + 1) - first);
  write_lists(&lists, n_fields, collective);
  /* Write the same values again, with contiguous memory (H5S_BLOCK). */
  DO(H5Dwrite(lists.datasets[0], H5T_NATIVE_DOUBLE, H5S_BLOCK, lists.rows[0], H5P_DEFAULT,
              lists.values[0]));
  end_lists(&lists);
  begin_lists(&lists, n_rows / 2 + first, first_row(n_rows / 2, rank + 1) - first);
  write_lists(&lists, 1, H5P_DEFAULT);
  for (int i = 1; i < n_fields; ++i) {
    Lists one = lists;
    one.datasets[0] = lists.datasets[i];
    one.memory[0] = lists.memory[i];
    one.rows[0] = lists.rows[i];
    one.values[0] = lists.values[i];
    write_lists(&one, 1, H5P_DEFAULT);
  }
  end_lists(&lists);
  MPI_Barrier(MPI_COMM_WORLD);
  check_all(&lists, collective);
  check_all(&lists, H5P_DEFAULT);
  for (int i = 0; i < n_fields; ++i) DO(H5Dclose(lists.datasets[i]));
  DO(H5Pclose(collective));
  DO(H5Sclose(space));
  DO(H5Fclose(file));
}

static void wait_for(hid_t events) {
  size_t n_under_way = 1;
  hbool_t failed = 1;
  DO(H5ESwait(events, H5ES_WAIT_FOREVER, &n_under_way, &failed));
  CHECK(n_under_way == 0 && !failed);
}

/* Use the asynchronous form of every call that has one. */
static void async(const char* path) {
  const hsize_t start_extents[2] = {20, 50};
  const hsize_t extents[2] = {40, 50};
  const hsize_t most[2] = {H5S_UNLIMITED, 50};
  const hsize_t chunk[2] = {7, 32};
  hid_t events = H5EScreate();
  hid_t access = mpio_list();
  hid_t file = H5Fcreate_async(path, H5F_ACC_TRUNC, H5P_DEFAULT, access, events);
  DO(file);
  hid_t group = H5Gcreate_async(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT, events);
  DO(group);
  hid_t space = space_of(2, start_extents, most);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_chunk(list, 2, chunk));
  hid_t datasets[3];
  const char* names[3] = {"kept", "other", "deleted"};
  for (int i = 0; i < 3; ++i) {
    datasets[i] = H5Dcreate_async(group, names[i], H5T_NATIVE_DOUBLE, space, H5P_DEFAULT, list,
                                  H5P_DEFAULT, events);
    DO(datasets[i]);
  }
  wait_for(events);
  DO(H5Dset_extent_async(datasets[0], extents, events));
  hid_t memory;
  hid_t collective = collective_list();
  double values[40 * 50];
  for (int part = 0; part < 2; ++part) {
    const hsize_t n = 20;
    hsize_t first = (hsize_t)part * n + first_row(n, rank);
    hsize_t count = (hsize_t)part * n + first_row(n, rank + 1) - first;
    hid_t rows = rows_of(datasets[0], first, count, &memory);
    for (hsize_t i = 0; i < count * 50; ++i) values[i] = value_at(first * 50 + i);
    DO(H5Dwrite_async(datasets[0], H5T_NATIVE_DOUBLE, memory, rows, part ? collective : H5P_DEFAULT,
                      values, events));
    wait_for(events);
    DO(H5Sclose(rows));
    DO(H5Sclose(memory));
  }
  DO(H5Fflush_async(file, H5F_SCOPE_GLOBAL, events));
  hsize_t first = first_row(20, rank);
  hid_t rows = rows_of(datasets[1], first, first_row(20, rank + 1) - first, &memory);
  hid_t twice[2] = {datasets[1], datasets[2]};
  hid_t types[2] = {H5T_NATIVE_DOUBLE, H5T_NATIVE_DOUBLE};
  hid_t memories[2] = {memory, memory};
  hid_t files[2] = {rows, rows};
  const void* both[2] = {values, values};
  DO(H5Dwrite_multi_async(2, twice, types, memories, files, collective, both, events));
  wait_for(events);
  double all[40 * 50];
  DO(H5Dread_async(datasets[0], H5T_NATIVE_DOUBLE, H5S_ALL, H5S_ALL, collective, all, events));
  wait_for(events);
  for (hsize_t i = 0; i < 40 * 50; ++i) CHECK(all[i] == value_at(i));
  void* into[2] = {all, all + 20 * 50};
  hid_t everything[2] = {H5S_ALL, H5S_ALL};
  DO(H5Dread_multi_async(2, twice, types, everything, everything, collective, into, events));
  wait_for(events);
  CHECK(memcmp(all, all + 20 * 50, sizeof(double) * 20 * 50) == 0);
  CHECK(all[0] == value_at(20 * 50));
  DO(H5Sclose(rows));
  DO(H5Sclose(memory));
  DO(H5Ocopy_async(group, "kept", file, "copy", H5P_DEFAULT, H5P_DEFAULT, events));
  for (int i = 0; i < 3; ++i) DO(H5Dclose_async(datasets[i], events));
  wait_for(events);
  DO(H5Ldelete_async(group, "deleted", H5P_DEFAULT, events));
  DO(H5Gclose_async(group, events));
  DO(H5Fclose_async(file, events));
  wait_for(events);
  file = H5Fopen_async(path, H5F_ACC_RDWR, access, events);
  DO(file);
  wait_for(events);
  write_attribute(file, "opened", 1);
  DO(H5Fclose_async(file, events));
  wait_for(events);
  DO(H5ESclose(events));
  DO(H5Pclose(collective));
  DO(H5Pclose(list));
  DO(H5Pclose(access));
  DO(H5Sclose(space));
}

static int note_insertion(const H5ES_op_info_t* operation, H5ES_status_t status, hid_t error_stack,
                          void* data) {
  (void)operation, (void)status, (void)error_stack;
  ++*(int*)data;
  return 0;
}

/* Store an event set's counts in attributes, for comparison: after successful calls, a call that
 * fails, and a cancellation. */
static void events(const char* path) {
  const hsize_t extents[2] = {40, 50};
  const hsize_t other_extents[1] = {7};
  int n_inserted = 0;
  hid_t access = mpio_list();
  hid_t set = H5EScreate();
  DO(set);
  DO(H5ESregister_insert_func(set, note_insertion, &n_inserted));
  hid_t file = H5Fcreate_async(path, H5F_ACC_TRUNC, H5P_DEFAULT, access, set);
  DO(file);
  hid_t space = space_of(2, extents, NULL);
  hid_t dataset = H5Dcreate_async(file, "values", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT,
                                  H5P_DEFAULT, H5P_DEFAULT, set);
  DO(dataset);
  hid_t memory;
  hsize_t first = first_row(40, rank);
  hsize_t n = first_row(40, rank + 1) - first;
  hid_t rows = rows_of(dataset, first, n, &memory);
  double values[40 * 50];
  for (hsize_t i = 0; i < n * 50; ++i) values[i] = value_at(first * 50 + i);
  DO(H5Dwrite_async(dataset, H5T_NATIVE_DOUBLE, memory, rows, H5P_DEFAULT, values, set));
  /* Memory and file have different numbers of elements. */
  hid_t wrong = space_of(1, other_extents, NULL);
  H5E_auto2_t printer;
  void* data;
  DO(H5Eget_auto2(H5E_DEFAULT, &printer, &data));
  DO(H5Eset_auto2(H5E_DEFAULT, NULL, NULL));
  CHECK(H5Dwrite_async(dataset, H5T_NATIVE_DOUBLE, wrong, H5S_ALL, H5P_DEFAULT, values, set) < 0);
  CHECK(H5Eget_num(H5E_DEFAULT) > 0);
  DO(H5Eset_auto2(H5E_DEFAULT, printer, data));
  size_t n_there = 9;
  size_t n_failed = 9;
  size_t n_not_cancelled = 9;
  size_t n_under_way = 9;
  size_t n_cleared = 9;
  uint64_t n_operations = 9;
  hbool_t failed = 1;
  hbool_t failed_to_cancel = 1;
  hbool_t failed_to_end = 1;
  H5ES_err_info_t info[1];
  DO(H5ESget_count(set, &n_there));
  DO(H5ESget_op_counter(set, &n_operations));
  DO(H5ESget_err_status(set, &failed));
  DO(H5ESget_err_count(set, &n_failed));
  DO(H5ESget_err_info(set, 1, info, &n_cleared));
  DO(H5EScancel(set, &n_not_cancelled, &failed_to_cancel));
  DO(H5ESwait(set, H5ES_WAIT_NONE, &n_under_way, &failed_to_end));
  write_attribute(file, "inserted", n_inserted);
  write_attribute(file, "there", (int)n_there);
  write_attribute(file, "operations", (int)n_operations);
  write_attribute(file, "failed", failed ? 1 : 0);
  write_attribute(file, "failures", (int)n_failed);
  write_attribute(file, "cleared", (int)n_cleared);
  write_attribute(file, "not cancelled", (int)n_not_cancelled);
  write_attribute(file, "cancellation failed", failed_to_cancel ? 1 : 0);
  write_attribute(file, "under way", (int)n_under_way);
  write_attribute(file, "ended badly", failed_to_end ? 1 : 0);
  DO(H5Sclose(wrong));
  DO(H5Sclose(rows));
  DO(H5Sclose(memory));
  DO(H5Sclose(space));
  DO(H5Dclose_async(dataset, set));
  DO(H5Fflush_async(file, H5F_SCOPE_GLOBAL, H5ES_NONE));
  DO(H5Fclose_async(file, set));
  wait_for(set);
  DO(H5ESclose(set));
  DO(H5Pclose(access));
}

static int visit_chunk(const hsize_t* offset, unsigned filters, haddr_t address, hsize_t n_bytes,
                       void* data) {
  (void)offset, (void)filters, (void)address, (void)n_bytes, (void)data;
  return 0;
}

/* Datasets of two files in one call, and a call that only rank 0 could serve, fail without harm. */
static void refused_later(const char* path) {
  char second[4096];
  const hsize_t extents[2] = {n_rows, n_columns};
  hid_t file = create_file(path);
  snprintf(second, sizeof(second), "%s.second", path);
  hid_t other = create_file(second);
  hid_t space = space_of(2, extents, NULL);
  hid_t collective = collective_list();
  Lists lists;
  for (int i = 0; i < n_fields; ++i) lists.datasets[i] = field_of(i < 2 ? file : other, i, space);
  hsize_t first = first_row(n_rows, rank);
  begin_lists(&lists, first, first_row(n_rows, rank + 1) - first);
  H5E_auto2_t printer;
  void* data;
  DO(H5Eget_auto2(H5E_DEFAULT, &printer, &data));
  DO(H5Eset_auto2(H5E_DEFAULT, NULL, NULL));
  CHECK(H5Dwrite_multi(n_fields, lists.datasets, lists.types, lists.memory, lists.rows, H5P_DEFAULT,
                       (const void**)lists.values) < 0);
  DO(H5Eset_auto2(H5E_DEFAULT, printer, data));
  write_lists(&lists, 2, collective);
  Lists rest = lists;
  for (int i = 0; i < 2; ++i) {
    rest.datasets[i] = lists.datasets[i + 2];
    rest.rows[i] = lists.rows[i + 2];
    rest.memory[i] = lists.memory[i + 2];
    rest.values[i] = lists.values[i + 2];
  }
  write_lists(&rest, 2, collective);
  DO(H5Eset_auto2(H5E_DEFAULT, NULL, NULL));
  CHECK(H5Dchunk_iter(lists.datasets[1], H5P_DEFAULT, visit_chunk, NULL) < 0);
  DO(H5Eset_auto2(H5E_DEFAULT, printer, data));
  end_lists(&lists);
  for (int i = 0; i < n_fields; ++i) DO(H5Dclose(lists.datasets[i]));
  DO(H5Pclose(collective));
  DO(H5Sclose(space));
  DO(H5Fclose(other));
  DO(H5Fclose(file));
}

/* The program chooses our connector itself, for one of two files. */
static void chosen(const char* path) {
  char second[4096];
  hid_t connector = H5VLregister_connector_by_name("tailrace", H5P_DEFAULT);
  DO(connector);
  snprintf(second, sizeof(second), "%s.second", path);
  for (int i = 0; i < 2; ++i) {
    hid_t list = mpio_list();
    if (i == 0) DO(H5Pset_vol(list, connector, NULL));
    hid_t file = H5Fcreate(i == 0 ? path : second, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    DO(file);
    DO(H5Pclose(list));
    hid_t own = H5Fget_access_plist(file);
    hid_t by = H5I_INVALID_HID;
    DO(H5Pget_vol_id(own, &by));
    char name[16] = "";
    DO(H5VLget_connector_name(file, name, sizeof(name)));
    CHECK(strcmp(name, i == 0 ? "tailrace" : "native") == 0);
    int differs = 1;
    DO(H5VLcmp_connector_cls(&differs, by, connector));
    CHECK((differs == 0) == (i == 0));
    DO(H5VLclose(by));
    DO(H5Pclose(own));
    const hsize_t extents[2] = {n_rows, n_columns};
    hid_t space = space_of(2, extents, NULL);
    hid_t dataset = create(file, "values", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT);
    hsize_t first = first_row(n_rows, rank);
    write_rows(dataset, first, first_row(n_rows, rank + 1) - first, n_columns, H5P_DEFAULT);
    DO(H5Dclose(dataset));
    DO(H5Sclose(space));
    DO(H5Fclose(file));
  }
  DO(H5VLclose(connector));
}

int main(int argc, char** argv) {
  static const Pattern patterns[] = {{"multi", multi},
                                     {"async", async},
                                     {"events", events},
                                     {"refused_later", refused_later},
                                     {"chosen", chosen}};
  return run_patterns(argc, argv, patterns, sizeof(patterns) / sizeof(patterns[0]));
}

#else

int main(void) {
  fprintf(stderr, "HDF5 is older than 1.14\n");
  return 3;
}

#endif
