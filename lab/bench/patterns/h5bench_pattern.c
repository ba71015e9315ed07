/* Access patterns of programs on parallel HDF5, after the documentation of h5bench (its write and
 * read kernels). Three more patterns are costly in themselves: very small writes, many small
 * datasets, plotfiles as AMReX writes them. Uses HDF5 and MPI only, without any call to Tailrace.
 *
 *   h5bench_pattern write FILE     particles of 8 variables, a group for each time step.
 *   h5bench_pattern read FILE      reads and compares the output of `write` with equal options.
 *   h5bench_pattern small FILE     --calls H5Dwrite of --bytes by each rank.
 *   h5bench_pattern tables FILE    --datasets of --bytes, with four attributes each.
 *   h5bench_pattern plotfile FILE  --components of --boxes per rank of --cells per direction.
 *
 *   --dims 4096x8x8     extents of a rank, 1 to 3; ranks are consecutive along the first.
 *   --steps N           time steps, --compute S seconds between them.
 *   --memory, --in-file contiguous (variable by variable) or interleaved (structures).
 *                       The file may also be strided: --block elements of every --stride.
 *   --transfers         collective or independent.
 *   --part              for reads: full, partial (the first half of a rank's particles), strided.
 *   --flush             never, end, or steps: H5Fflush after each step.
 *   --bound X           largest error of the values read.
 *   --chunk N --filter ID:CD,CD,...   for plotfiles: chunks of N elements with HDF5's own filter.
 *   --values FILE       for plotfiles: f64 by component and cells of a cube with two boxes' edge.
 *
 * Rank 0 prints one line of JSON: seconds of the slowest rank, from barrier to barrier.
 */

#define _POSIX_C_SOURCE 200809L /* clock_gettime, nanosleep */

#include <hdf5.h>
#include <math.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { n_variables = 8, most_dimensions = 3, most_filter_values = 32 };

typedef struct {
  float x, y, z, px, py, pz;
  int id_1;
  float id_2;
} Particle;

static const char* const variable_names[n_variables] = {"x",  "y",  "z",    "px",
                                                        "py", "pz", "id_1", "id_2"};
static const int id_variable = 6; /* The integer variable. */

typedef struct {
  const char* command;
  const char* file;
  hsize_t dims[most_dimensions];
  int n_dims;
  int steps;
  double compute_s;
  const char* memory;
  const char* in_file;
  const char* part;
  const char* flush;
  int collective;
  hsize_t block, stride;
  double bound;
  long calls, bytes, datasets;
  int components, boxes, cells;
  hsize_t chunk;
  int filter;
  unsigned filter_values[most_filter_values];
  size_t n_filter_values;
  const char* values;
} Options;

static Options options = {.dims = {32768, 1, 1},
                          .n_dims = 1,
                          .steps = 3,
                          .memory = "contiguous",
                          .in_file = "contiguous",
                          .part = "full",
                          .flush = "end",
                          .collective = 1,
                          .block = 2,
                          .stride = 8,
                          .calls = 1000,
                          .bytes = 256,
                          .datasets = 1000,
                          .components = 13,
                          .boxes = 8,
                          .cells = 32};
static int rank, n_ranks;

static void end_all(const char* what, int line, int code) {
  fprintf(stderr, "rank %d: line %d: %s\n", rank, line, what);
  MPI_Abort(MPI_COMM_WORLD, code);
}

/* Every call must succeed; otherwise the program names it and ends the job. */
#define DO(call)                                                      \
  do {                                                                \
    if ((long long)(call) < 0) end_all(#call " failed", __LINE__, 1); \
  } while (0)
#define CHECK(condition)                                                 \
  do {                                                                   \
    if (!(condition)) end_all(#condition " does not hold", __LINE__, 2); \
  } while (0)

static hid_t checked(hid_t id, const char* what, int line) {
  if (id < 0) end_all(what, line, 1);
  return id;
}
#define ID(call) checked((call), #call " failed", __LINE__)

static void* room_of(size_t n_bytes) {
  void* room = calloc(n_bytes + 1, 1);
  CHECK(room != NULL);
  return room;
}

/* --- time */

static double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void compute(void) {
  struct timespec left = {(time_t)options.compute_s,
                          (long)(1e9 * (options.compute_s - floor(options.compute_s)))};
  nanosleep(&left, NULL);
}

/* Seconds of the parts on this rank. */
typedef struct {
  const char* name;
  double s;
} Part;
enum { most_parts = 8 };
static Part parts[most_parts];
static int n_parts;

static void add_seconds(const char* name, double s) {
  for (int i = 0; i < n_parts; ++i) {
    if (strcmp(parts[i].name, name) == 0) {
      parts[i].s += s;
      return;
    }
  }
  CHECK(n_parts < most_parts);
  parts[n_parts].name = name;
  parts[n_parts++].s = s;
}

#define TIMED(name, ...)                     \
  do {                                       \
    const double begin_s_ = seconds();       \
    __VA_ARGS__;                             \
    add_seconds(name, seconds() - begin_s_); \
  } while (0)

/* Report the maxima over ranks; all ranks have the same parts, in the same order. */
static void report(double raw_bytes, double total_s) {
  add_seconds("total_s", total_s);
  double mine[most_parts], most[most_parts];
  for (int i = 0; i < n_parts; ++i) mine[i] = parts[i].s;
  MPI_Reduce(mine, most, n_parts, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank != 0) return;
  printf("{\"command\": \"%s\", \"ranks\": %d, \"raw_bytes\": %.0f", options.command, n_ranks,
         raw_bytes);
  for (int i = 0; i < n_parts; ++i) printf(", \"%s\": %.9g", parts[i].name, most[i]);
  printf("}\n");
}

/* --- shared functions */

static hid_t file_access(void) {
  hid_t list = ID(H5Pcreate(H5P_FILE_ACCESS));
  DO(H5Pset_fapl_mpio(list, MPI_COMM_WORLD, MPI_INFO_NULL));
  DO(H5Pset_coll_metadata_write(list, 1));
  DO(H5Pset_all_coll_metadata_ops(list, 1));
  return list;
}

static hid_t create_file(void) {
  hid_t list = file_access();
  hid_t file = ID(H5Fcreate(options.file, H5F_ACC_TRUNC, H5P_DEFAULT, list));
  DO(H5Pclose(list));
  return file;
}

static hid_t open_file(unsigned flags) {
  hid_t list = file_access();
  hid_t file = ID(H5Fopen(options.file, flags, list));
  DO(H5Pclose(list));
  return file;
}

static hid_t transfers(int collective) {
  hid_t list = ID(H5Pcreate(H5P_DATASET_XFER));
  DO(H5Pset_dxpl_mpio(list, collective ? H5FD_MPIO_COLLECTIVE : H5FD_MPIO_INDEPENDENT));
  return list;
}

static hid_t create_dataset(hid_t at, const char* name, hid_t type, hid_t space, hid_t creation) {
  return ID(H5Dcreate2(at, name, type, space, H5P_DEFAULT, creation, H5P_DEFAULT));
}

static void write_attribute(hid_t object, const char* name, hid_t type, const void* value) {
  hid_t space = ID(H5Screate(H5S_SCALAR));
  hid_t attribute = ID(H5Acreate2(object, name, type, space, H5P_DEFAULT, H5P_DEFAULT));
  DO(H5Awrite(attribute, type, value));
  DO(H5Aclose(attribute));
  DO(H5Sclose(space));
}

static void write_text(hid_t object, const char* name, const char* text) {
  hid_t type = ID(H5Tcopy(H5T_C_S1));
  DO(H5Tset_size(type, strlen(text) + 1));
  write_attribute(object, name, type, text);
  DO(H5Tclose(type));
}

/* --- particles */

static hid_t type_of(int variable) {
  return variable == id_variable ? H5T_NATIVE_INT : H5T_NATIVE_FLOAT;
}

/* Value of a particle, whose number i is global to the job. */
static float real_at(hsize_t i, int step, int variable) {
  const double t = 1e-4 * (double)i;
  return (float)((variable + 1) * (sin(t + variable) + 0.1 * step) + 1e-3 * (double)(i % 7));
}
static int id_at(hsize_t i, int step) { return (int)i + 1000 * step; }

static size_t offset_of(int variable) { return (size_t)variable * sizeof(float); }

/* Type of the complete structure, or of a structure with one of its members. */
static hid_t particle_type(int first, int n, size_t bytes) {
  hid_t type = ID(H5Tcreate(H5T_COMPOUND, bytes));
  for (int v = first; v < first + n; ++v) {
    DO(H5Tinsert(type, variable_names[v], offset_of(v - (bytes < sizeof(Particle) ? first : 0)),
                 type_of(v)));
  }
  return type;
}

static int is_strided(const char* what) { return strcmp(what, "strided") == 0; }

/* Particles of this rank that a kernel transfers: all, the first half, or blocks. */
static hid_t select_particles(const char* part, hsize_t* n_selected) {
  hsize_t extents[most_dimensions], start[most_dimensions] = {0}, count[most_dimensions];
  for (int d = 0; d < options.n_dims; ++d) extents[d] = count[d] = options.dims[d];
  extents[0] *= (hsize_t)n_ranks;
  start[0] = options.dims[0] * (hsize_t)rank;
  hid_t space = ID(H5Screate_simple(options.n_dims, extents, NULL));
  if (is_strided(part)) {
    hsize_t stride[most_dimensions] = {options.stride, 1, 1};
    hsize_t block[most_dimensions] = {options.block, 1, 1};
    count[0] = options.dims[0] / options.stride;
    DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, stride, count, block));
  } else {
    if (strcmp(part, "partial") == 0) count[0] = (count[0] + 1) / 2;
    DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
  }
  *n_selected = (hsize_t)H5Sget_select_npoints(space);
  return space;
}

/* Global number of each selected particle, in the order of the file. */
static hsize_t* selected_numbers(const char* part, hsize_t n) {
  hsize_t* numbers = room_of(n * sizeof(hsize_t));
  hsize_t row = 1;
  for (int d = 1; d < options.n_dims; ++d) row *= options.dims[d];
  for (hsize_t i = 0; i < n; ++i) {
    hsize_t at = i / row;
    if (is_strided(part)) at = at / options.block * options.stride + at % options.block;
    numbers[i] = (options.dims[0] * (hsize_t)rank + at) * row + i % row;
  }
  return numbers;
}

static int in_structures(const char* what) { return strcmp(what, "interleaved") == 0; }

/* Memory space of one variable: dense, or one of eight numbers of each structure. */
static hid_t memory_space(hsize_t n, int variable) {
  if (!in_structures(options.memory)) return ID(H5Screate_simple(1, &n, NULL));
  const hsize_t extents[2] = {n, n_variables};
  const hsize_t start[2] = {0, (hsize_t)variable};
  const hsize_t count[2] = {n, 1};
  hid_t space = ID(H5Screate_simple(2, extents, NULL));
  DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, start, NULL, count, NULL));
  return space;
}

/* Address of one of eight 4-byte numbers per particle, stored by variable or in structures. */
static char* number_of(char* values, hsize_t n, hsize_t i, int variable) {
  const hsize_t at = in_structures(options.memory) ? i * n_variables + (hsize_t)variable
                                                   : (hsize_t)variable * n + i;
  return values + at * sizeof(float);
}

/* Address at which the memory space of one variable starts. */
static char* begin_of(char* values, hsize_t n, int variable) {
  return in_structures(options.memory) ? values : number_of(values, n, 0, variable);
}

static void make_values(char* values, const hsize_t* numbers, hsize_t n, int step) {
  for (int v = 0; v < n_variables; ++v) {
    for (hsize_t i = 0; i < n; ++i) {
      const float real = real_at(numbers[i], step, v);
      const int id = id_at(numbers[i], step);
      memcpy(number_of(values, n, i, v), v == id_variable ? (const void*)&id : &real,
             sizeof(float));
    }
  }
}

static void compare_values(char* values, const hsize_t* numbers, hsize_t n, int step) {
  for (int v = 0; v < n_variables; ++v) {
    for (hsize_t i = 0; i < n; ++i) {
      float real;
      int id;
      memcpy(&real, number_of(values, n, i, v), sizeof real);
      memcpy(&id, number_of(values, n, i, v), sizeof id);
      if (v == id_variable) CHECK(id == id_at(numbers[i], step));
      if (v != id_variable)
        CHECK(fabs((double)real - real_at(numbers[i], step, v)) <= options.bound);
    }
  }
}

/* Transfer structures of the file: complete, or each variable as a structure of one member. */
static void move_structures(int writes, hid_t dataset, hid_t space, hid_t list, char* values,
                            hsize_t n) {
  hid_t memory = ID(H5Screate_simple(1, &n, NULL));
  const int whole = in_structures(options.memory);
  for (int v = 0; v < (whole ? 1 : n_variables); ++v) {
    hid_t type = whole ? particle_type(0, n_variables, sizeof(Particle))
                       : particle_type(v, 1, sizeof(float));
    char* at = begin_of(values, n, v);
    DO(writes ? H5Dwrite(dataset, type, memory, space, list, at)
              : H5Dread(dataset, type, memory, space, list, at));
    DO(H5Tclose(type));
  }
  DO(H5Sclose(memory));
}

static void write_step(hid_t group, hid_t space, hid_t list, char* values, hsize_t n) {
  if (in_structures(options.in_file)) {
    hid_t type = particle_type(0, n_variables, sizeof(Particle));
    hid_t dataset;
    TIMED("create_s", dataset = create_dataset(group, "particles", type, space, H5P_DEFAULT));
    TIMED("write_s", move_structures(1, dataset, space, list, values, n));
    DO(H5Dclose(dataset));
    DO(H5Tclose(type));
    return;
  }
  for (int v = 0; v < n_variables; ++v) {
    hid_t dataset;
    hid_t memory = memory_space(n, v);
    TIMED("create_s",
          dataset = create_dataset(group, variable_names[v], type_of(v), space, H5P_DEFAULT));
    TIMED("write_s",
          DO(H5Dwrite(dataset, type_of(v), memory, space, list, begin_of(values, n, v))));
    DO(H5Dclose(dataset));
    DO(H5Sclose(memory));
  }
}

static void group_name(int step, char* name, size_t n) { snprintf(name, n, "Timestep_%d", step); }

static void write_particles(void) {
  hsize_t n;
  const char* part = is_strided(options.in_file) ? "strided" : "full";
  hid_t space = select_particles(part, &n);
  hsize_t* numbers = selected_numbers(part, n);
  char* values = room_of(n * sizeof(Particle));
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_s = seconds();
  double apart_s = 0; /* Time to generate values, which does not count. */
  hid_t file, list = transfers(options.collective);
  TIMED("file_s", file = create_file());
  for (int step = 0; step < options.steps; ++step) {
    const double made_s = seconds();
    make_values(values, numbers, n, step);
    apart_s += seconds() - made_s;
    char name[64];
    group_name(step, name, sizeof name);
    hid_t group = ID(H5Gcreate2(file, name, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    write_step(group, space, list, values, n);
    DO(H5Gclose(group));
    if (strcmp(options.flush, "steps") == 0) TIMED("flush_s", DO(H5Fflush(file, H5F_SCOPE_GLOBAL)));
    if (options.compute_s > 0 && step + 1 < options.steps) TIMED("compute_s", compute());
  }
  if (strcmp(options.flush, "end") == 0) TIMED("flush_s", DO(H5Fflush(file, H5F_SCOPE_GLOBAL)));
  DO(H5Pclose(list));
  TIMED("close_s", DO(H5Fclose(file)));
  MPI_Barrier(MPI_COMM_WORLD);
  const double end_s = seconds();
  DO(H5Sclose(space));
  free(numbers);
  free(values);
  report((double)n * sizeof(Particle) * options.steps * n_ranks, end_s - begin_s - apart_s);
}

static void read_particles(void) {
  hsize_t n;
  hid_t space = select_particles(options.part, &n);
  hsize_t* numbers = selected_numbers(options.part, n);
  char* values = room_of(n * sizeof(Particle));
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_s = seconds();
  double apart_s = 0;
  hid_t file, list = transfers(options.collective);
  TIMED("file_s", file = open_file(H5F_ACC_RDONLY));
  for (int step = 0; step < options.steps; ++step) {
    char name[64];
    group_name(step, name, sizeof name);
    hid_t group = ID(H5Gopen2(file, name, H5P_DEFAULT));
    for (int v = 0; v < (in_structures(options.in_file) ? 1 : n_variables); ++v) {
      const char* of = in_structures(options.in_file) ? "particles" : variable_names[v];
      hid_t dataset = ID(H5Dopen2(group, of, H5P_DEFAULT));
      hid_t memory = memory_space(n, v);
      if (in_structures(options.in_file)) {
        TIMED("read_s", move_structures(0, dataset, space, list, values, n));
      } else {
        TIMED("read_s",
              DO(H5Dread(dataset, type_of(v), memory, space, list, begin_of(values, n, v))));
      }
      DO(H5Sclose(memory));
      DO(H5Dclose(dataset));
    }
    DO(H5Gclose(group));
    const double compared_s = seconds();
    compare_values(values, numbers, n, step);
    memset(values, 0, n * sizeof(Particle));
    apart_s += seconds() - compared_s;
  }
  DO(H5Pclose(list));
  TIMED("close_s", DO(H5Fclose(file)));
  MPI_Barrier(MPI_COMM_WORLD);
  const double end_s = seconds();
  DO(H5Sclose(space));
  free(numbers);
  free(values);
  report((double)n * sizeof(Particle) * options.steps * n_ranks, end_s - begin_s - apart_s);
}

/* --- small writes, small datasets */

static double number_at(hsize_t i) { return sin(1e-3 * (double)i) + 1e-3 * (double)(i % 7); }

static double* numbers_from(hsize_t first, hsize_t n) {
  double* values = room_of(n * sizeof(double));
  for (hsize_t i = 0; i < n; ++i) values[i] = number_at(first + i);
  return values;
}

/* Each rank writes its part of one dataset piece by piece, independently. */
static void write_small(void) {
  const hsize_t piece = (hsize_t)options.bytes / sizeof(double);
  const hsize_t n = piece * (hsize_t)options.calls;
  const hsize_t extent = n * (hsize_t)n_ranks;
  const hsize_t first = n * (hsize_t)rank;
  double* values = numbers_from(first, n);
  hid_t file = create_file();
  hid_t space = ID(H5Screate_simple(1, &extent, NULL));
  hid_t memory = ID(H5Screate_simple(1, &piece, NULL));
  hid_t dataset = create_dataset(file, "values", H5T_NATIVE_DOUBLE, space, H5P_DEFAULT);
  hid_t list = transfers(0);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_s = seconds();
  for (hsize_t i = 0; i < n; i += piece) {
    const hsize_t start = first + i;
    DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &piece, NULL));
    DO(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, list, values + i));
  }
  add_seconds("write_s", seconds() - begin_s);
  DO(H5Dclose(dataset));
  DO(H5Pclose(list));
  TIMED("close_s", DO(H5Fclose(file)));
  MPI_Barrier(MPI_COMM_WORLD);
  const double end_s = seconds();
  DO(H5Sclose(space));
  DO(H5Sclose(memory));
  free(values);
  report((double)extent * sizeof(double), end_s - begin_s);
}

/* Every rank writes a part of every dataset. */
static void write_tables(void) {
  const hsize_t n = (hsize_t)options.bytes / sizeof(double);
  const hsize_t first = n * (hsize_t)rank / (hsize_t)n_ranks;
  const hsize_t count = n * (hsize_t)(rank + 1) / (hsize_t)n_ranks - first;
  double* values = numbers_from(first, count);
  hid_t space = ID(H5Screate_simple(1, &n, NULL));
  hid_t memory = ID(H5Screate_simple(1, &count, NULL));
  DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, &first, NULL, &count, NULL));
  hid_t list = transfers(options.collective);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_s = seconds();
  hid_t file;
  TIMED("file_s", file = create_file());
  for (long d = 0; d < options.datasets; ++d) {
    char name[64];
    hid_t dataset;
    snprintf(name, sizeof name, "table_%05ld", d);
    const double offset = (double)d;
    for (hsize_t i = 0; i < count; ++i) values[i] = number_at(first + i) + offset;
    TIMED("create_s", dataset = create_dataset(file, name, H5T_NATIVE_DOUBLE, space, H5P_DEFAULT));
    for (int a = 0; a < 4; ++a) {
      char attribute[32];
      snprintf(attribute, sizeof attribute, "attribute_%d", a);
      TIMED("create_s", write_attribute(dataset, attribute, H5T_NATIVE_DOUBLE, &offset));
    }
    TIMED("write_s", DO(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, list, values)));
    DO(H5Dclose(dataset));
  }
  DO(H5Pclose(list));
  TIMED("close_s", DO(H5Fclose(file)));
  MPI_Barrier(MPI_COMM_WORLD);
  const double end_s = seconds();
  DO(H5Sclose(space));
  DO(H5Sclose(memory));
  free(values);
  report((double)n * sizeof(double) * (double)options.datasets, end_s - begin_s);
}

/* --- a plotfile of one level: the calls of AMReX's WriteMultiLevelPlotfileHDF5 */

typedef struct {
  int low[3];
  int high[3];
} Box;

/* Box of the job; eight boxes form a cube of two by two by two, and cubes are stacked. */
static Box box_at(int index) {
  Box box;
  for (int d = 0; d < 3; ++d) {
    box.low[d] = options.cells * ((index >> d & 1) + (d == 2 ? 2 * (index / 8) : 0));
    box.high[d] = box.low[d] + options.cells - 1;
  }
  return box;
}

static hid_t box_type(void) {
  static const char* const names[6] = {"lo_i", "lo_j", "lo_k", "hi_i", "hi_j", "hi_k"};
  hid_t type = ID(H5Tcreate(H5T_COMPOUND, sizeof(Box)));
  for (size_t i = 0; i < 6; ++i) DO(H5Tinsert(type, names[i], i * sizeof(int), H5T_NATIVE_INT));
  return type;
}

/* All components of a cube with the edge of two boxes, x fastest. level_values() shifts them
 * differently on each rank, so that no two ranks have the same values. */
static double* cube_values(void) {
  const size_t edge = 2 * (size_t)options.cells;
  const size_t n = (size_t)options.components * edge * edge * edge;
  double* cube = room_of(n * sizeof(double));
  if (options.values == NULL) {
    for (size_t i = 0; i < n; ++i) {
      const size_t component = i / (edge * edge * edge);
      const double x = (double)(i % edge), y = (double)(i / edge % edge);
      const double z = (double)(i / edge / edge % edge);
      cube[i] = pow(10, (double)(component % 7)) *
                (2 + sin(0.11 * x) * cos(0.07 * y + (double)component) + 0.01 * z);
    }
    return cube;
  }
  FILE* from = fopen(options.values, "rb");
  CHECK(from != NULL && fread(cube, sizeof(double), n, from) == n);
  fclose(from);
  return cube;
}

/* Values by box, component and cell. */
static double* level_values(const double* cube, int first_box) {
  const int c = options.cells;
  const size_t edge = 2 * (size_t)c, n_cells = (size_t)c * (size_t)c * (size_t)c;
  double* values =
      room_of((size_t)options.boxes * (size_t)options.components * n_cells * sizeof(double));
  double* to = values;
  for (int b = first_box; b < first_box + options.boxes; ++b) {
    const Box box = box_at(b);
    for (int component = 0; component < options.components; ++component) {
      const double* from = cube + (size_t)component * edge * edge * edge;
      for (int i = 0; i < c * c * c; ++i) {
        const size_t x = (size_t)(box.low[0] + i % c + 5 * rank) % edge;
        const size_t y = (size_t)(box.low[1] + i / c % c + 3 * rank) % edge;
        const size_t z = (size_t)(box.low[2] + i / c / c) % edge;
        *to++ = from[(z * edge + y) * edge + x];
      }
    }
  }
  return values;
}

static void write_header(void) {
  hid_t file = ID(H5Fcreate(options.file, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT));
  const int dimensions = 3, one = 1;
  write_text(file, "version_name", "HyperCLaw-V1.1");
  write_text(file, "plotfile_type", "VanillaHDF5");
  write_attribute(file, "num_components", H5T_NATIVE_INT, &options.components);
  write_attribute(file, "num_levels", H5T_NATIVE_INT, &one);
  for (int i = 0; i < options.components; ++i) {
    char name[64], text[64];
    snprintf(name, sizeof name, "component_%d", i);
    snprintf(text, sizeof text, "variable_%d", i);
    write_text(file, name, text);
  }
  hid_t global = ID(H5Gcreate2(file, "Chombo_global", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  write_attribute(global, "SpaceDim", H5T_NATIVE_INT, &dimensions);
  DO(H5Gclose(global));
  DO(H5Fclose(file));
}

static void write_by_root(hid_t group, const char* name, hid_t type, hsize_t n,
                          const void* values) {
  hid_t space = ID(H5Screate_simple(1, &n, NULL));
  hid_t dataset = create_dataset(group, name, type, space, H5P_DEFAULT);
  if (rank == 0) DO(H5Dwrite(dataset, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, values));
  DO(H5Dclose(dataset));
  DO(H5Sclose(space));
}

static void write_geometry(hid_t group, hsize_t box_elements) {
  const int n_boxes = options.boxes * n_ranks, ratio = 2;
  const double cell_size = 1.0 / options.cells;
  Box* boxes = room_of((size_t)n_boxes * sizeof(Box));
  long long* offsets = room_of(((size_t)n_boxes + 1) * sizeof(long long));
  Box domain = {{0, 0, 0}, {0, 0, 0}};
  for (int b = 0; b < n_boxes; ++b) {
    boxes[b] = box_at(b);
    offsets[b + 1] = (long long)box_elements * (b + 1);
    for (int d = 0; d < 3; ++d) {
      if (boxes[b].high[d] > domain.high[d]) domain.high[d] = boxes[b].high[d];
    }
  }
  hid_t type = box_type();
  write_attribute(group, "dx", H5T_NATIVE_DOUBLE, &cell_size);
  write_attribute(group, "ref_ratio", H5T_NATIVE_INT, &ratio);
  write_attribute(group, "prob_domain", type, &domain);
  write_by_root(group, "boxes", type, (hsize_t)n_boxes, boxes);
  write_by_root(group, "data:offsets=0", H5T_NATIVE_LLONG, (hsize_t)n_boxes + 1, offsets);
  DO(H5Tclose(type));
  free(boxes);
  free(offsets);
}

static void write_plotfile(void) {
  const hsize_t n_cells = (hsize_t)options.cells * (hsize_t)options.cells * (hsize_t)options.cells;
  const hsize_t box_elements = n_cells * (hsize_t)options.components;
  const hsize_t count = box_elements * (hsize_t)options.boxes;
  const hsize_t extent = count * (hsize_t)n_ranks, start = count * (hsize_t)rank;
  double* cube = cube_values();
  double* values = level_values(cube, options.boxes * rank);
  free(cube);
  MPI_Barrier(MPI_COMM_WORLD);
  const double begin_s = seconds();
  if (rank == 0) write_header();
  MPI_Barrier(MPI_COMM_WORLD);
  hid_t file, group;
  TIMED("file_s", file = open_file(H5F_ACC_RDWR));
  group = ID(H5Gcreate2(file, "level_0", H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
  write_geometry(group, box_elements);
  hid_t creation = ID(H5Pcreate(H5P_DATASET_CREATE));
  DO(H5Pset_alloc_time(creation, H5D_ALLOC_TIME_EARLY));
  DO(H5Pset_fill_time(creation, H5D_FILL_TIME_NEVER));
  if (options.chunk > 0) DO(H5Pset_chunk(creation, 1, &options.chunk));
  if (options.filter > 0) {
    DO(H5Pset_filter(creation, options.filter, H5Z_FLAG_MANDATORY, options.n_filter_values,
                     options.filter_values));
  }
  hid_t space = ID(H5Screate_simple(1, &extent, NULL));
  hid_t memory = ID(H5Screate_simple(1, &count, NULL));
  DO(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL));
  hid_t dataset, list = transfers(1);
  TIMED("create_s",
        dataset = create_dataset(group, "data:datatype=0", H5T_NATIVE_DOUBLE, space, creation));
  TIMED("write_s", DO(H5Dwrite(dataset, H5T_NATIVE_DOUBLE, memory, space, list, values)));
  DO(H5Pclose(list));
  DO(H5Pclose(creation));
  DO(H5Dclose(dataset));
  DO(H5Gclose(group));
  TIMED("close_s", DO(H5Fclose(file)));
  MPI_Barrier(MPI_COMM_WORLD);
  const double end_s = seconds();
  DO(H5Sclose(space));
  DO(H5Sclose(memory));
  free(values);
  report((double)extent * sizeof(double), end_s - begin_s);
}

/* --- the command line */

static void refuse(const char* why) {
  if (rank == 0) fprintf(stderr, "h5bench_pattern: %s (its first comment tells more)\n", why);
  MPI_Finalize();
  exit(3);
}

static const char* one_of(const char* value, const char* const* choices) {
  for (; *choices != NULL; ++choices) {
    if (strcmp(value, *choices) == 0) return *choices;
  }
  refuse(value);
  return NULL;
}

static long count_of(const char* text) {
  char* end;
  const long n = strtol(text, &end, 10);
  if (*end != '\0' || n < 1) refuse(text);
  return n;
}

static void take_dims(const char* text) {
  const char* at = text;
  options.n_dims = 0;
  while (*at != '\0') {
    char* end;
    const long long extent = strtoll(at, &end, 10);
    if (extent < 1 || options.n_dims == most_dimensions || (*end != 'x' && *end != '\0')) {
      refuse(text);
    }
    options.dims[options.n_dims++] = (hsize_t)extent;
    at = *end == 'x' ? end + 1 : end;
  }
}

static void take_filter(const char* text) {
  char* end;
  options.filter = (int)strtol(text, &end, 10);
  while (*end == ':' || *end == ',') {
    if (options.n_filter_values == most_filter_values) refuse(text);
    options.filter_values[options.n_filter_values++] = (unsigned)strtoul(end + 1, &end, 10);
  }
  if (*end != '\0' || options.filter < 1) refuse(text);
}

static void take_option(const char* key, const char* value) {
  static const char* const kinds[] = {"contiguous", "interleaved", NULL};
  static const char* const file_kinds[] = {"contiguous", "interleaved", "strided", NULL};
  static const char* const part_kinds[] = {"full", "partial", "strided", NULL};
  static const char* const flush_kinds[] = {"never", "end", "steps", NULL};
  static const char* const transfer_kinds[] = {"independent", "collective", NULL};
  if (value == NULL) refuse(key);
  if (strcmp(key, "--dims") == 0)
    take_dims(value);
  else if (strcmp(key, "--steps") == 0)
    options.steps = (int)count_of(value);
  else if (strcmp(key, "--compute") == 0)
    options.compute_s = strtod(value, NULL);
  else if (strcmp(key, "--memory") == 0)
    options.memory = one_of(value, kinds);
  else if (strcmp(key, "--in-file") == 0)
    options.in_file = one_of(value, file_kinds);
  else if (strcmp(key, "--part") == 0)
    options.part = one_of(value, part_kinds);
  else if (strcmp(key, "--flush") == 0)
    options.flush = one_of(value, flush_kinds);
  else if (strcmp(key, "--transfers") == 0)
    options.collective = one_of(value, transfer_kinds) == transfer_kinds[1];
  else if (strcmp(key, "--block") == 0)
    options.block = (hsize_t)count_of(value);
  else if (strcmp(key, "--stride") == 0)
    options.stride = (hsize_t)count_of(value);
  else if (strcmp(key, "--bound") == 0)
    options.bound = strtod(value, NULL);
  else if (strcmp(key, "--calls") == 0)
    options.calls = count_of(value);
  else if (strcmp(key, "--bytes") == 0)
    options.bytes = count_of(value);
  else if (strcmp(key, "--datasets") == 0)
    options.datasets = count_of(value);
  else if (strcmp(key, "--components") == 0)
    options.components = (int)count_of(value);
  else if (strcmp(key, "--boxes") == 0)
    options.boxes = (int)count_of(value);
  else if (strcmp(key, "--cells") == 0)
    options.cells = (int)count_of(value);
  else if (strcmp(key, "--chunk") == 0)
    options.chunk = (hsize_t)count_of(value);
  else if (strcmp(key, "--filter") == 0)
    take_filter(value);
  else if (strcmp(key, "--values") == 0)
    options.values = value;
  else
    refuse(key);
}

static void parse_arguments(int argc, char** argv) {
  if (argc < 3) refuse("expected a command and a file");
  options.command = argv[1];
  options.file = argv[2];
  for (int i = 3; i < argc; i += 2) take_option(argv[i], argv[i + 1]);
  if (options.stride < options.block) refuse("--stride must be at least --block");
  if (is_strided(options.in_file) && strcmp(options.command, "read") == 0) {
    options.part = "strided"; /* Everything that was written. */
  }
  if (options.bytes % (long)sizeof(double) != 0) refuse("--bytes must be a multiple of 8");
  if (options.filter > 0 && options.chunk == 0) refuse("--filter needs --chunk");
}

int main(int argc, char** argv) {
  static const struct {
    const char* name;
    void (*run)(void);
  } commands[] = {{"write", write_particles},
                  {"read", read_particles},
                  {"small", write_small},
                  {"tables", write_tables},
                  {"plotfile", write_plotfile}};
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  parse_arguments(argc, argv);
  int found = 0;
  for (size_t i = 0; i < sizeof commands / sizeof commands[0]; ++i) {
    if (strcmp(options.command, commands[i].name) != 0) continue;
    commands[i].run();
    found = 1;
  }
  if (!found) refuse(options.command);
  MPI_Finalize();
  return 0;
}
