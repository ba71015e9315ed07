/* Interpreter of a list of writes and reads, whose selections are composed of several hyperslabs.
 * Program of test_hdf5_unions.py, which knows the right values.
 *
 *   write_unions FOLDER LIST [served]
 *
 * LIST has one operation a line, as numbers. All transfers are collective; one rank selects
 * elements, the others none. Result: FOLDER/unions.h5, and FOLDER/read_N.bin for the N-th read.
 * Word `served`: H5Pget_mpio_actual_io_mode must report each transfer as collective.
 *
 *   D number rank chunked extents...               create dataset dN of doubles
 *   W rank dataset memory floats seed selection    write seed, seed + 1, ...
 *   R rank dataset memory floats selection         read, and write the values to a file
 *   F                                              H5Fflush
 *   C                                              close the file and open it again
 *
 *   memory     0: contiguous. 1: every second element. 2: reversed, as points. 3: two parts.
 *   floats     1: the memory type is float.
 *   selection  offset..., number of parts, then the parts: operation start... stride... count...
 *              block...
 *   operation  of H5Sselect_hyperslab. 0: set. 1: or. 2: and. 3: xor. 4: not b. 5: not a.
 */

#include "parallel_patterns.h"

enum { most_datasets = 16, most_dimensions = 4 };

static hid_t datasets[most_datasets];
static int n_dims[most_datasets];
static int served;

static long long number(FILE* list) {
  long long n = 0;
  CHECK(fscanf(list, "%lld", &n) == 1);
  return n;
}

static void numbers(FILE* list, int n, hsize_t* values) {
  for (int i = 0; i < n; ++i) values[i] = (hsize_t)number(list);
}

static void create_dataset(FILE* list, hid_t file) {
  const int which = (int)number(list);
  const int n = n_dims[which] = (int)number(list);
  const int chunked = (int)number(list);
  hsize_t extents[most_dimensions], chunk[most_dimensions];
  char name[16];
  numbers(list, n, extents);
  hid_t creation = H5Pcreate(H5P_DATASET_CREATE);
  for (int d = 0; d < n; ++d) chunk[d] = extents[d] / 3 + 1;
  if (chunked) DO(H5Pset_chunk(creation, n, chunk));
  hid_t space = space_of(n, extents, NULL);
  sprintf(name, "d%d", which);
  datasets[which] = create(file, name, H5T_NATIVE_DOUBLE, space, creation);
  DO(H5Sclose(space));
  DO(H5Pclose(creation));
}

static hid_t selection(FILE* list, int which) {
  static const H5S_seloper_t operations[] = {H5S_SELECT_SET, H5S_SELECT_OR,   H5S_SELECT_AND,
                                             H5S_SELECT_XOR, H5S_SELECT_NOTB, H5S_SELECT_NOTA};
  const int n = n_dims[which];
  hid_t space = H5Dget_space(datasets[which]);
  hssize_t offset[most_dimensions];
  for (int d = 0; d < n; ++d) offset[d] = (hssize_t)number(list);
  DO(H5Sselect_none(space));
  for (long long parts = number(list); parts > 0; --parts) {
    hsize_t words[4][most_dimensions];
    const H5S_seloper_t operation = operations[number(list)];
    for (int w = 0; w < 4; ++w) numbers(list, n, words[w]);
    DO(H5Sselect_hyperslab(space, operation, words[0], words[1], words[2], words[3]));
  }
  DO(H5Soffset_simple(space, offset));
  return space;
}

/* Position in memory of the i-th of n elements. */
static hsize_t place_of(hsize_t i, hsize_t n, int memory) {
  switch (memory) {
    case 1: return 2 * i + 1;
    case 2: return n - 1 - i;
    case 3: return i < n / 2 ? i : i + 5;
    default: return i;
  }
}

static hid_t memory_space(hsize_t n, int memory) {
  const hsize_t extent = 2 * n + 8;
  hid_t space = space_of(1, &extent, NULL);
  const hsize_t start = memory == 1 ? 1 : 0, stride = memory == 1 ? 2 : 1;
  if (n == 0) {
    DO(H5Sselect_none(space));
  } else if (memory == 2) {
    hsize_t* points = malloc(n * sizeof *points);
    for (hsize_t i = 0; i < n; ++i) points[i] = place_of(i, n, memory);
    DO(H5Sselect_elements(space, H5S_SELECT_SET, n, points));
    free(points);
  } else if (memory == 3 && n > 1) {
    const hsize_t half = n / 2, rest = n - half, second = half + 5;
    DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &half, NULL));
    DO(H5Sselect_hyperslab(space, H5S_SELECT_OR, &second, NULL, &rest, NULL));
  } else {
    const hsize_t first = memory == 3 ? place_of(0, n, memory) : start;
    DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, &stride, &n, NULL));
  }
  return space;
}

static void transfer(FILE* list, const char* folder, int writes, int n_reads) {
  const int by = (int)number(list);
  const int which = (int)number(list);
  const int memory = (int)number(list);
  const int floats = (int)number(list);
  const double seed = writes ? (double)number(list) : 0;
  hid_t there = selection(list, which);
  if (rank != by % n_ranks) DO(H5Sselect_none(there));
  const hsize_t n = (hsize_t)H5Sget_select_npoints(there);
  hid_t here = memory_space(n, memory);
  const size_t extent = (size_t)(2 * n + 8);
  double* doubles = calloc(extent, sizeof *doubles);
  float* singles = calloc(extent, sizeof *singles);
  for (hsize_t i = 0; writes && i < n; ++i) {
    doubles[place_of(i, n, memory)] = seed + (double)i;
    singles[place_of(i, n, memory)] = (float)(seed + (double)i);
  }
  hid_t together = collective_list();
  hid_t type = floats ? H5T_NATIVE_FLOAT : H5T_NATIVE_DOUBLE;
  void* values = floats ? (void*)singles : (void*)doubles;
  if (writes) {
    DO(H5Dwrite(datasets[which], type, here, there, together, values));
  } else {
    DO(H5Dread(datasets[which], type, here, there, together, values));
  }
  if (served) {
    H5D_mpio_actual_io_mode_t mode = H5D_MPIO_NO_COLLECTIVE;
    hid_t creation = H5Dget_create_plist(datasets[which]);
    const int chunked = H5Pget_layout(creation) == H5D_CHUNKED;
    DO(H5Pget_mpio_actual_io_mode(together, &mode));
    CHECK(mode == (chunked ? H5D_MPIO_CHUNK_COLLECTIVE : H5D_MPIO_CONTIGUOUS_COLLECTIVE));
    DO(H5Pclose(creation));
  }
  if (!writes && rank == by % n_ranks) {
    char path[4096];
    snprintf(path, sizeof path, "%s/read_%d.bin", folder, n_reads);
    FILE* out = fopen(path, "wb");
    CHECK(out != NULL);
    for (hsize_t i = 0; i < n; ++i) {
      const hsize_t at = place_of(i, n, memory);
      const double value = floats ? singles[at] : doubles[at];
      CHECK(fwrite(&value, sizeof value, 1, out) == 1);
    }
    CHECK(fclose(out) == 0);
  }
  DO(H5Pclose(together));
  DO(H5Sclose(there));
  DO(H5Sclose(here));
  free(doubles);
  free(singles);
}

static void close_datasets(void) {
  for (int i = 0; i < most_datasets; ++i) {
    if (datasets[i] > 0) DO(H5Dclose(datasets[i]));
  }
}

static hid_t reopen(hid_t file, const char* path) {
  close_datasets();
  DO(H5Fclose(file));
  file = open_file(path, H5F_ACC_RDWR);
  for (int i = 0; i < most_datasets; ++i) {
    char name[16];
    sprintf(name, "d%d", i);
    if (datasets[i] > 0) DO(datasets[i] = H5Dopen2(file, name, H5P_DEFAULT));
  }
  return file;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  CHECK(argc == 3 || argc == 4);
  served = argc == 4;
  FILE* list = fopen(argv[2], "r");
  CHECK(list != NULL);
  char path[4096], word[2];
  snprintf(path, sizeof path, "%s/unions.h5", argv[1]);
  hid_t file = create_file(path);
  int n_reads = 0;
  while (fscanf(list, "%1s", word) == 1) {
    switch (word[0]) {
      case 'D': create_dataset(list, file); break;
      case 'W': transfer(list, argv[1], 1, 0); break;
      case 'R': transfer(list, argv[1], 0, n_reads++); break;
      case 'F': DO(H5Fflush(file, H5F_SCOPE_GLOBAL)); break;
      case 'C': file = reopen(file, path); break;
      default: CHECK(0);
    }
  }
  fclose(list);
  close_datasets();
  DO(H5Fclose(file));
  MPI_Finalize();
  return 0;
}
