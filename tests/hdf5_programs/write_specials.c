/* Patterns with data that HDF5 itself must write, in files that Tailrace serves. Elements of
 * variable length and references are written by rank 0, external files by each rank. Other patterns
 * write chunks that the program has encoded, or use a missing filter. test_hdf5_programs.py checks
 * the files.
 */

#define _POSIX_C_SOURCE 200809L /* setenv */

#include <unistd.h>

#include "parallel_patterns.h"

static H5E_auto2_t printer;
static void* printer_data;

static void be_silent(void) {
  DO(H5Eget_auto2(H5E_DEFAULT, &printer, &printer_data));
  DO(H5Eset_auto2(H5E_DEFAULT, NULL, NULL));
}
static void be_loud(void) { DO(H5Eset_auto2(H5E_DEFAULT, printer, printer_data)); }

static hid_t write_values(hid_t file, const char* name, hid_t list) {
  const hsize_t extents[2] = {50, 100};
  hid_t space = space_of(2, extents, NULL);
  hid_t dataset = create(file, name, H5T_NATIVE_DOUBLE, space, list);
  const hsize_t first = first_row(50, rank);
  write_rows(dataset, first, first_row(50, rank + 1) - first, 100, H5P_DEFAULT);
  DO(H5Sclose(space));
  return dataset;
}

/* Only rank 0 writes such elements; calls of other ranks fail. */
static void of_rank_0(const char* path) {
  hid_t file = create_file(path);
  hid_t values = write_values(file, "values", H5P_DEFAULT);
  hid_t group = H5Gcreate2(file, "group", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  DO(group);
  const hsize_t n = 3;
  hid_t space = space_of(1, &n, NULL);
  hid_t text = H5Tcopy(H5T_C_S1);
  DO(H5Tset_size(text, H5T_VARIABLE));
  hid_t texts = create(file, "texts", text, space, H5P_DEFAULT);
  hid_t links = create(file, "links", H5T_STD_REF_OBJ, space, H5P_DEFAULT);
  hid_t selected = H5Scopy(space);
  if (rank != 0) DO(H5Sselect_none(selected));
  const char* words[3] = {"one", "two", "three, which is longer"};
  hid_t collective = collective_list();
  DO(H5Dwrite(texts, text, selected, selected, collective, words));
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  hobj_ref_t targets[3] = {0, 0, 0};
  if (rank == 0) {
    words[1] = "changed after a flush";
    DO(H5Dwrite(texts, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, words));
    DO(H5Rcreate(&targets[0], file, "values", H5R_OBJECT, -1));
    DO(H5Rcreate(&targets[1], file, "/group", H5R_OBJECT, -1));
    DO(H5Dwrite(links, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, targets));
    char* read[3];
    DO(H5Dread(texts, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, read));
    CHECK(strcmp(read[0], "one") == 0 && strcmp(read[1], words[1]) == 0);
    DO(H5Dvlen_reclaim(text, space, H5P_DEFAULT, read));
    hobj_ref_t found[3];
    DO(H5Dread(links, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, found));
    CHECK(memcmp(found, targets, sizeof(found)) == 0);
  } else {
    be_silent();
    CHECK(H5Dwrite(texts, text, H5S_ALL, H5S_ALL, H5P_DEFAULT, words) < 0);
    CHECK(H5Dread(links, H5T_STD_REF_OBJ, H5S_ALL, H5S_ALL, H5P_DEFAULT, targets) < 0);
    be_loud();
  }
  /* Other ranks cannot read the values of a copy, either. */
  DO(H5Ocopy(file, "texts", file, "copy", H5P_DEFAULT, H5P_DEFAULT));
  hid_t copy = H5Dopen2(file, "copy", H5P_DEFAULT);
  DO(copy);
  char* copied[3] = {NULL, NULL, NULL};
  be_silent();
  CHECK((H5Dread(copy, text, H5S_ALL, H5S_ALL, collective, copied) < 0) == (rank != 0));
  be_loud();
  if (rank == 0) {
    CHECK(strcmp(copied[1], words[1]) == 0);
    DO(H5Dvlen_reclaim(text, space, H5P_DEFAULT, copied));
  }
  DO(H5Dclose(copy));
  DO(H5Pclose(collective));
  DO(H5Sclose(selected));
  DO(H5Sclose(space));
  DO(H5Tclose(text));
  DO(H5Dclose(texts));
  DO(H5Dclose(links));
  DO(H5Gclose(group));
  DO(H5Dclose(values));
  DO(H5Fclose(file));
}

/* Keep datasets of text open, change them between flushes, and never close them. */
static void killed_texts(const char* path) {
  hid_t file = create_file(path);
  const hsize_t n = 40;
  const hsize_t chunk = 7;
  hid_t space = space_of(1, &n, NULL);
  hid_t text = H5Tcopy(H5T_C_S1);
  DO(H5Tset_size(text, H5T_VARIABLE));
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_chunk(list, 1, &chunk));
  hid_t texts[2] = {create(file, "whole", text, space, H5P_DEFAULT),
                    create(file, "chunks", text, space, list)};
  for (int round = 0; round < 3; ++round) {
    char words[40][64];
    const char* given[40];
    for (int i = 0; i < 40; ++i) {
      snprintf(words[i], sizeof(words[i]), "%*d of round %d", 10 * round + 1, i, round);
      given[i] = words[i];
    }
    for (int k = 0; k < 2 && rank == 0; ++k) {
      DO(H5Dwrite(texts[k], text, H5S_ALL, H5S_ALL, H5P_DEFAULT, given));
    }
    if (round < 2) DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  _exit(9);
}

static void external(const char* path) {
  char outside[4200];
  snprintf(outside, sizeof(outside), "%s.values", path);
  if (rank == 0) remove(outside);
  MPI_Barrier(MPI_COMM_WORLD);
  hid_t file = create_file(path);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_external(list, outside, 0, H5F_UNLIMITED));
  hid_t dataset = write_values(file, "values", list);
  hid_t memory;
  hid_t rows = rows_of(dataset, first_row(50, rank), 1, &memory);
  hid_t collective = collective_list();
  double row[100];
  for (int i = 0; i < 100; ++i) row[i] = -(double)rank - 1;
  DO(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, rows, collective, row));
  /* The row is in the external file at once. */
  double read[100];
  FILE* raw = fopen(outside, "rb");
  CHECK(raw != NULL);
  CHECK(fseek(raw, (long)(first_row(50, rank) * 100 * sizeof(double)), SEEK_SET) == 0);
  CHECK(fread(read, sizeof(double), 100, raw) == 100);
  CHECK(memcmp(read, row, sizeof(row)) == 0);
  fclose(raw);
  DO(H5Dread(dataset, H5T_NATIVE_DOUBLE, memory, rows, collective, read));
  CHECK(memcmp(read, row, sizeof(row)) == 0);
  DO(H5Pclose(collective));
  DO(H5Sclose(rows));
  DO(H5Sclose(memory));
  DO(H5Dclose(dataset));
  DO(H5Pclose(list));
  DO(H5Fclose(file));
}

/* Ranks write ten chunks of six rows in turn; the last chunk has only four. */
static void direct_chunks(const char* path) {
  const hsize_t extents[2] = {58, 50};
  const hsize_t chunk[2] = {6, 50};
  hid_t file = create_file(path);
  hid_t space = space_of(2, extents, NULL);
  hid_t plain = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_chunk(plain, 2, chunk));
  hid_t filtered = H5Pcopy(plain);
  DO(H5Pset_shuffle(filtered));
  DO(H5Pset_deflate(filtered, 6));
  hid_t bare = create(file, "bare", H5T_NATIVE_DOUBLE, space, plain);
  hid_t masked = create(file, "masked", H5T_NATIVE_DOUBLE, space, filtered);
  hid_t copied = create(file, "copied", H5T_NATIVE_DOUBLE, space, filtered);
  double values[300];
  unsigned char encoded[4000] = {0};
  for (int i = rank; i < 10; i += n_ranks) {
    const hsize_t offset[2] = {(hsize_t)i * 6, 0};
    hsize_t n_bytes = 0;
    uint32_t mask = 7;
    for (int j = 0; j < 300; ++j) values[j] = value_at((hsize_t)(i * 300 + j));
    DO(H5Dwrite_chunk(bare, H5P_DEFAULT, 0, offset, sizeof(values), values));
    DO(H5Dwrite_chunk(masked, H5P_DEFAULT, 3, offset, sizeof(values), values));
    DO(H5Dget_chunk_storage_size(masked, offset, &n_bytes));
    CHECK(n_bytes > 0 && n_bytes < sizeof(values));
#if H5_VERSION_GE(2, 0, 0)
    (void)mask; /* H5Dread_chunk has other arguments there, and fails. */
    (void)encoded;
    DO(H5Dwrite_chunk(copied, H5P_DEFAULT, 3, offset, sizeof(values), values));
#else
    DO(H5Dread_chunk(masked, H5P_DEFAULT, offset, &mask, encoded));
    CHECK(mask == 0);
    DO(H5Dwrite_chunk(copied, H5P_DEFAULT, mask, offset, n_bytes, encoded));
#endif
    be_silent();
    const hsize_t between[2] = {offset[0] + 1, 0};
    CHECK(H5Dwrite_chunk(bare, H5P_DEFAULT, 0, between, sizeof(values), values) < 0);
    CHECK(H5Dwrite_chunk(bare, H5P_DEFAULT, 0, offset, 100, values) < 0);
    CHECK(H5Dwrite_chunk(copied, H5P_DEFAULT, 0, offset, 100, encoded + 50) < 0);
    be_loud();
  }
  DO(H5Dclose(bare));
  DO(H5Dclose(masked));
  DO(H5Dclose(copied));
  DO(H5Pclose(plain));
  DO(H5Pclose(filtered));
  DO(H5Sclose(space));
  DO(H5Fclose(file));
}

/* Use an optional filter that does not exist: HDF5 skips it and sets a bit in each chunk's mask. */
static void no_filter(const char* path) {
  const hsize_t chunk[2] = {10, 100};
  hid_t file = create_file(path);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_chunk(list, 2, chunk));
  DO(H5Pset_filter(list, 256, H5Z_FLAG_OPTIONAL, 0, NULL));
  hid_t dataset = write_values(file, "values", list);
  DO(H5Dclose(dataset));
  DO(H5Pclose(list));
  DO(H5Fclose(file));
}

/* Write small datasets, some of which are open during a flush: by two ids, or by the second one. */
static void killed_small(const char* path) {
  enum { n_datasets = 48 };
  const hsize_t n = 60;
  const hsize_t chunk = 7;
  hid_t file = create_file(path);
  hid_t again = H5Freopen(file);
  hid_t space = space_of(1, &n, NULL);
  hid_t type = H5Tarray_create2(H5T_NATIVE_DOUBLE, 1, &chunk);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_chunk(list, 1, &chunk));
  DO(again);
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < n_datasets; ++i) {
      char name[32];
      double values[60 * 7];
      hid_t memory;
      snprintf(name, sizeof(name), "small_%02d", i);
      hid_t dataset = round == 0 ? create(file, name, type, space, i % 2 ? list : H5P_DEFAULT)
                                 : H5Dopen2(file, name, H5P_DEFAULT);
      DO(dataset);
      const hsize_t first = first_row(n, rank);
      const hsize_t count = first_row(n, rank + 1) - first;
      hid_t rows = rows_of(dataset, first, count, &memory);
      for (hsize_t k = 0; k < count * 7; ++k) {
        values[k] = value_at(first * 7 + k) + 1000 * i + 100000 * round;
      }
      DO(H5Dwrite(dataset, type, memory, rows, H5P_DEFAULT, values));
      DO(H5Sclose(rows));
      DO(H5Sclose(memory));
      if (i % 3 == 1) DO(H5Dopen2(again, name, H5P_DEFAULT));
      if (i % 6 < 3) DO(H5Dclose(dataset));
    }
    if (round < 2) DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  }
  MPI_Barrier(MPI_COMM_WORLD);
  _exit(9);
}

typedef struct {
  int first;
  double two[2];
  float last;
  int unused;
} Triple;

static hid_t triple_member(int which) {
  const hsize_t two = 2;
  hid_t pair = H5Tarray_create2(H5T_NATIVE_DOUBLE, 1, &two);
  hid_t type = H5Tcreate(H5T_COMPOUND, which < 0 ? sizeof(Triple) : which == 1 ? 16 : 4);
  if (which < 0 || which == 0) DO(H5Tinsert(type, "first", 0, H5T_NATIVE_INT));
  if (which < 0 || which == 1) DO(H5Tinsert(type, "two", which < 0 ? 8 : 0, pair));
  if (which < 0 || which == 2) DO(H5Tinsert(type, "last", which < 0 ? 24 : 0, H5T_NATIVE_FLOAT));
  DO(H5Tclose(pair));
  return type;
}

/* Write one member, or all if `which` is negative, in the rows of a rank's part. */
static void write_triples(hid_t dataset, int which, int of_rank, double add) {
  const hsize_t first = first_row(40, of_rank);
  const hsize_t n = first_row(40, of_rank + 1) - first;
  hid_t memory;
  hid_t rows = rows_of(dataset, first, n, &memory);
  Triple* whole = calloc(n + 1, sizeof(Triple));
  double* two = calloc(2 * n + 2, sizeof(double));
  float* last = calloc(n + 1, sizeof(float));
  int* number = calloc(n + 1, sizeof(int));
  for (hsize_t i = 0; i < n; ++i) {
    const double value = (double)(first + i) + add;
    whole[i].first = number[i] = (int)value;
    whole[i].two[0] = two[2 * i] = value + 0.25;
    whole[i].two[1] = two[2 * i + 1] = value + 0.5;
    whole[i].last = last[i] = (float)value + 0.75F;
  }
  const void* const values[3] = {number, two, last};
  hid_t type = triple_member(which);
  DO(H5Dwrite(dataset, type, memory, rows, H5P_DEFAULT, which < 0 ? whole : values[which]));
  DO(H5Tclose(type));
  DO(H5Sclose(rows));
  DO(H5Sclose(memory));
  free(whole);
  free(two);
  free(last);
  free(number);
}

/* Ranks write different members of the same elements, in turn; each member keeps its last value. */
static void members(const char* path) {
  const hsize_t extent = 40, most = H5S_UNLIMITED, chunk = 8, cut = 35;
  const int next = (rank + 1) % n_ranks;
  hid_t file = create_file(path);
  hid_t list = H5Pcreate(H5P_DATASET_CREATE);
  DO(H5Pset_chunk(list, 1, &chunk));
  hid_t space = space_of(1, &extent, &most);
  hid_t type = triple_member(-1);
  hid_t dataset = create(file, "triples", type, space, list);
  write_triples(dataset, -1, rank, 0);
  MPI_Barrier(MPI_COMM_WORLD);
  write_triples(dataset, 0, next, 100); /* Write elements of another rank. */
  write_triples(dataset, 2, rank, 200);
  write_triples(dataset, 2, rank, 250); /* Write the same elements again. */
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == n_ranks - 1) write_triples(dataset, -1, 0, 300); /* Overwrite all members, */
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0) write_triples(dataset, 0, 0, 400); /* then one of them. */
  DO(H5Fflush(file, H5F_SCOPE_GLOBAL));
  write_triples(dataset, 1, next, 500);
  Triple own[40];
  memset(own, 0, sizeof(own));
  const hsize_t first = first_row(40, next);
  const hsize_t n = first_row(40, next + 1) - first;
  hid_t memory;
  hid_t rows = rows_of(dataset, first, n, &memory);
  /* A rank reads its new members together with the flushed ones. */
  DO(H5Dread(dataset, type, memory, rows, H5P_DEFAULT, own));
  for (hsize_t i = 0; i < n; ++i) {
    CHECK(own[i].two[1] == (double)(first + i) + 500.5);
    CHECK(own[i].first == (int)(first + i) + (next == 0 ? 400 : 100));
    CHECK(own[i].last == (float)(first + i) + (next == 0 ? 300.75F : 250.75F));
  }
  DO(H5Sclose(rows));
  DO(H5Sclose(memory));
  DO(H5Dset_extent(dataset, &cut)); /* Discards staged elements beyond the extent. */
  DO(H5Dset_extent(dataset, &extent));
  DO(H5Dclose(dataset));
  DO(H5Tclose(type));
  DO(H5Sclose(space));
  DO(H5Pclose(list));
  DO(H5Fclose(file));
}

/* HDF5's metadata cache is larger than HDF5's default, unless the program has set its size. */
static void cache_sizes(const char* path) {
  for (int own = 0; own < 2; ++own) {
    hid_t list = mpio_list();
    H5AC_cache_config_t config;
    config.version = H5AC__CURR_CACHE_CONFIG_VERSION;
    DO(H5Pget_mdc_config(list, &config));
    CHECK(config.initial_size < (size_t)32 << 20);
    if (own) config.initial_size = (size_t)3 << 20;
    if (own) DO(H5Pset_mdc_config(list, &config));
    hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list);
    DO(file);
    DO(H5Fget_mdc_config(file, &config));
    CHECK(config.initial_size == (size_t)(own ? 3 : 32) << 20);
    CHECK(config.max_size == (size_t)(own ? 32 : 128) << 20);
    DO(H5Dclose(write_values(file, "values", H5P_DEFAULT)));
    DO(H5Fclose(file));
    DO(H5Pclose(list));
  }
}

/* The program chooses for each file if Tailrace serves it, and with which options. */
static void by_turns(const char* path) {
  static const char* const settings[4] = {"off", "on", "off", "on"};
  static const char* const options[4] = {"", "", "", "codec=none"};
  for (int i = 0; i < 4; ++i) {
    char name[4096];
    snprintf(name, sizeof(name), "%s.%d", path, i);
    CHECK(setenv("TAILRACE_HDF5", settings[i], 1) == 0);
    CHECK(setenv("TAILRACE_OPTIONS", options[i], 1) == 0);
    hid_t file = create_file(name);
    DO(H5Dclose(write_values(file, "values", H5P_DEFAULT)));
    DO(H5Fclose(file));
  }
}

int main(int argc, char** argv) {
  static const Pattern patterns[] = {{"of_rank_0", of_rank_0},
                                     {"external", external},
                                     {"killed_texts", killed_texts},
                                     {"killed_small", killed_small},
                                     {"direct_chunks", direct_chunks},
                                     {"no_filter", no_filter},
                                     {"members", members},
                                     {"by_turns", by_turns},
                                     {"cache_sizes", cache_sizes}};
  return run_patterns(argc, argv, patterns, sizeof(patterns) / sizeof(patterns[0]));
}
