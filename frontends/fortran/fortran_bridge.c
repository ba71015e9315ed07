/* C part of the Fortran module tailrace (tailrace.f90), for features that Fortran lacks:
 * communicators, and arrays of any type, rank and stride, which arrive as descriptors.
 *
 * Only this file converts Fortran's order of dimensions, first fastest, to the file's, last fastest
 * (reversed()), and Fortran's positions, which begin at 1. An error found here is stored as text
 * and reported to the file like a failed put: the next end_step fails on all ranks.
 */

#define _POSIX_C_SOURCE 200809L /* nanosleep */

#include <ISO_Fortran_binding.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tailrace/reader.h>
#include <tailrace/tailrace.h>
#include <time.h>

#ifdef TAILRACE_WITH_MPI
#include <mpi.h>
#endif

/* ----- failures */

static _Thread_local char own_text[512]; /* Empty: the last failure was the library's. */

static tailrace_error fail(const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(own_text, sizeof own_text, format, arguments);
  va_end(arguments);
  return TAILRACE_ERROR_INVALID_ARGUMENT;
}

/* Put the object's name before the text of a failure that was found here. */
static tailrace_error named(const char* kind, const char* name, tailrace_error error) {
  if (error == TAILRACE_OK || own_text[0] == '\0') return error;
  char text[sizeof own_text];
  memcpy(text, own_text, sizeof text);
  snprintf(own_text, sizeof own_text, "%.16s \"%.150s\": %.320s", kind, name, text);
  return error;
}

static tailrace_error passed_on(tailrace_error error) {
  own_text[0] = '\0';
  return error;
}

/* Report to the file a put, definition or attribute that failed before it reached the library. */
static tailrace_error remembered(tailrace_file* file, tailrace_error error) {
  if (error != TAILRACE_OK && own_text[0] != '\0' && file != NULL) {
    (void)tailrace_file_fail_step(file, own_text);
  }
  return error;
}

/* Refuse a call on a file or reader that is not open. */
#define NEEDS_OPEN(object, kind, call)                                          \
  do {                                                                          \
    if ((object) == NULL)                                                       \
      return fail(call ": the " kind " is not open; create or open it before"); \
  } while (0)

/* True if a text of the library names a box, a shape or a dimension by its number: "[0:8, 8:16]",
 * "16x8", "dimension 1". */
static int names_positions(const char* text) {
  static const char kDigits[] = "0123456789";
  const char* const dimension = strstr(text, "dimension ");
  if (dimension != NULL && strspn(dimension + strlen("dimension "), kDigits) > 0) return 1;
  for (const char* at = text; *at != '\0'; ++at) {
    const size_t n_opening = *at == '[' ? 1 : 0;
    const size_t n = strspn(at + n_opening, kDigits);
    if (n == 0) continue;
    at += n_opening + n;
    const char wanted = n_opening == 1 ? ':' : 'x';
    if (*at == wanted && strspn(at + 1, kDigits) > 0) return 1;
    if (*at == '\0') return 0;
  }
  return 0;
}

/* Return the text of this thread's last failure. Boxes and shapes in texts of the library are those
 * of the file. The text says so, because those of the program have the reverse order. */
const char* tailrace_fortran_error(void) {
  static _Thread_local char noted[4096];
  if (own_text[0] != '\0') return own_text;
  const char* const text = tailrace_thread_error();
  const char* const note = " (boxes and shapes: in the file's order, from 0)";
  if (!names_positions(text) || strlen(text) + strlen(note) >= sizeof noted) return text;
  snprintf(noted, sizeof noted, "%s%s", text, note);
  return noted;
}

/* Rank of this process in `comm`, a communicator of mpi or mpif.h; NULL: 0. */
int tailrace_fortran_rank(const int* comm) {
  int rank = 0;
#ifdef TAILRACE_WITH_MPI
  int usable = 0;
  MPI_Initialized(&usable);
  if (comm != NULL && usable) MPI_Comm_rank(MPI_Comm_f2c((MPI_Fint)*comm), &rank);
#else
  (void)comm;
#endif
  return rank;
}

/* End a rank whose error is that of all ranks, which rank 0 prints. Give rank 0 time for that,
 * because a launcher stops all ranks when the first one ends. Returns if the error is this rank's
 * own. */
void tailrace_fortran_end_quietly(int rank) {
  if (rank == 0 || own_text[0] != '\0') return;
  const struct timespec second = {.tv_sec = 1, .tv_nsec = 0};
  (void)nanosleep(&second, NULL);
  exit(EXIT_FAILURE);
}

size_t tailrace_fortran_length(const char* text) { return text == NULL ? 0 : strlen(text); }

/* ----- descriptors */

static size_t n_elements_of(const CFI_cdesc_t* array) {
  size_t n = 1;
  for (int d = 0; d < array->rank; ++d) {
    n *= array->dim[d].extent > 0 ? (size_t)array->dim[d].extent : 0;
  }
  return n;
}

/* True if the size of the last dimension is unknown: the actual argument is an assumed-size
 * array. */
static int is_assumed_size(const CFI_cdesc_t* array) {
  return array->rank > 0 && array->dim[array->rank - 1].extent < 0;
}

static int is_dense(const CFI_cdesc_t* array) {
  return array->rank == 0 || is_assumed_size(array) || n_elements_of(array) == 0 ||
         CFI_is_contiguous(array);
}

/* Copy between an array with gaps and dense memory, first dimension fastest. */
static void copy_elements(const CFI_cdesc_t* array, char* dense, int into_dense) {
  const size_t n = n_elements_of(array);
  CFI_index_t at[CFI_MAX_RANK] = {0};
  for (size_t i = 0; i < n; ++i) {
    char* element = array->base_addr;
    for (int d = 0; d < array->rank; ++d) element += at[d] * array->dim[d].sm;
    char* const place = dense + i * array->elem_len;
    memcpy(into_dense ? place : element, into_dense ? element : place, array->elem_len);
    for (int d = 0; d < array->rank && ++at[d] == array->dim[d].extent; ++d) at[d] = 0;
  }
}

static int is_signed_integer(CFI_type_t type) {
  return type == CFI_type_int8_t || type == CFI_type_int16_t || type == CFI_type_int32_t ||
         type == CFI_type_int64_t || type == CFI_type_signed_char || type == CFI_type_short ||
         type == CFI_type_int || type == CFI_type_long || type == CFI_type_long_long;
}

static int is_real(CFI_type_t type) { return type == CFI_type_float || type == CFI_type_double; }

/* True if elements of the descriptor's type fit a dtype. Fortran has no unsigned integers: its
 * signed integers carry their bits. */
static int fits(const CFI_cdesc_t* array, tailrace_dtype dtype) {
  if (array->elem_len != tailrace_dtype_bytes(dtype)) return 0;
  const int wants_real = dtype == TAILRACE_F32 || dtype == TAILRACE_F64;
  return wants_real ? is_real(array->type) : is_signed_integer(array->type);
}

static const char* type_text(const CFI_cdesc_t* array, char* text, size_t n_bytes) {
  const char* const kind = is_real(array->type)             ? "real"
                           : is_signed_integer(array->type) ? "integer"
                                                            : "an unsupported type";
  snprintf(text, n_bytes, "%s of %zu byte%s", kind, array->elem_len,
           array->elem_len == 1 ? "" : "s");
  return text;
}

static const char* dtype_text(tailrace_dtype dtype) {
  switch (dtype) {
    case TAILRACE_F32: return "real of 4 bytes";
    case TAILRACE_F64: return "real of 8 bytes";
    case TAILRACE_I8:
    case TAILRACE_U8: return "integer of 1 byte";
    case TAILRACE_I16:
    case TAILRACE_U16: return "integer of 2 bytes";
    case TAILRACE_I32:
    case TAILRACE_U32: return "integer of 4 bytes";
    case TAILRACE_I64:
    case TAILRACE_U64: return "integer of 8 bytes";
  }
  return "an unknown type";
}

static const char* element_at(const CFI_cdesc_t* list, size_t i) {
  return (const char*)list->base_addr + (list->rank == 0 ? 0 : (CFI_index_t)i * list->dim[0].sm);
}

/* Return one integer of any kind, from a list or a scalar. */
static int64_t integer_at(const CFI_cdesc_t* list, size_t i) {
  const char* const element = element_at(list, i);
  int8_t i8;
  int16_t i16;
  int32_t i32;
  int64_t i64;
  switch (list->elem_len) {
    case 1: memcpy(&i8, element, 1); return i8;
    case 2: memcpy(&i16, element, 2); return i16;
    case 4: memcpy(&i32, element, 4); return i32;
    default: memcpy(&i64, element, 8); return i64;
  }
}

/* Convert a list of positions or extents to the order of the file: last first, and minus
 * `first_index`. *n_dims SIZE_MAX: accept any number of entries. */
static tailrace_error reversed(const CFI_cdesc_t* list, const char* what, int64_t first_index,
                               size_t* n_dims, uint64_t* numbers) {
  if (list->rank != 1 || !is_signed_integer(list->type) || list->elem_len > 8) {
    return fail("%s must be an integer array of one dimension", what);
  }
  const size_t n = (size_t)list->dim[0].extent;
  if (*n_dims == SIZE_MAX) *n_dims = n;
  if (n != *n_dims || n > TAILRACE_RANK_MAX) {
    return n > TAILRACE_RANK_MAX
               ? fail("%s has %zu numbers; at most %d are supported", what, n, TAILRACE_RANK_MAX)
               : fail("%s has %zu numbers, must have %zu", what, n, *n_dims);
  }
  for (size_t d = 0; d < n; ++d) {
    const int64_t number = integer_at(list, d);
    if (number < first_index) {
      return fail("%s(%zu) is %lld, must be at least %lld", what, d + 1, (long long)number,
                  (long long)first_index);
    }
    numbers[n - 1 - d] = (uint64_t)(number - first_index);
  }
  return TAILRACE_OK;
}

/* The box of `values`: its count, or the extents of `values`. */
typedef struct {
  uint64_t start[TAILRACE_RANK_MAX];
  uint64_t count[TAILRACE_RANK_MAX];
  size_t n_elements;
} box;

static tailrace_error box_of(size_t n_dims, const CFI_cdesc_t* start, const CFI_cdesc_t* count,
                             const CFI_cdesc_t* values, box* made) {
  tailrace_error error = TAILRACE_OK;
  memset(made, 0, sizeof *made);
  if (start != NULL) error = reversed(start, "start", 1, &n_dims, made->start);
  if (error != TAILRACE_OK) return error;
  if (count != NULL) {
    error = reversed(count, "count", 0, &n_dims, made->count);
    if (error != TAILRACE_OK) return error;
  } else if (is_assumed_size(values)) {
    return fail("values have assumed size, so count= is required");
  } else if ((size_t)values->rank != n_dims) {
    return fail("values have %d dimensions, must have %zu; pass count=", values->rank, n_dims);
  } else {
    for (size_t d = 0; d < n_dims; ++d) {
      made->count[n_dims - 1 - d] = (uint64_t)values->dim[d].extent;
    }
  }
  made->n_elements = 1;
  for (size_t d = 0; d < n_dims; ++d) {
    if (__builtin_mul_overflow(made->n_elements, made->count[d], &made->n_elements)) {
      return fail("count covers more elements than memory can address");
    }
  }
  if (!is_assumed_size(values) && made->n_elements != n_elements_of(values)) {
    return fail("count covers %zu elements, values have %zu", made->n_elements,
                n_elements_of(values));
  }
  return TAILRACE_OK;
}

/* ----- files */

/* Create or open a file. `comm`: a communicator of mpi or mpif.h; NULL: only this process. */
tailrace_error tailrace_fortran_file(const char* path, int opens, const int* comm,
                                     const char* options, tailrace_file** file) {
  if (*file != NULL) return fail("the file variable is already in use; close its file first");
  const void* address = NULL;
  size_t n_bytes = 0;
#ifdef TAILRACE_WITH_MPI
  MPI_Comm converted = MPI_COMM_NULL;
  if (comm != NULL) {
    converted = MPI_Comm_f2c((MPI_Fint)*comm);
    address = &converted;
    n_bytes = sizeof(MPI_Comm);
  }
#else
  if (comm != NULL) {
    address = comm;
    n_bytes = sizeof *comm;
  }
#endif
  return passed_on(opens ? tailrace_file_open(path, address, n_bytes, options, file)
                         : tailrace_file_create(path, address, n_bytes, options, file));
}

tailrace_error tailrace_fortran_recover(const char* path, const int* comm, int* exists) {
#ifdef TAILRACE_WITH_MPI
  if (comm != NULL) {
    MPI_Comm converted = MPI_Comm_f2c((MPI_Fint)*comm);
    return passed_on(tailrace_file_recover(path, &converted, sizeof(MPI_Comm), exists));
  }
#endif
  return passed_on(tailrace_file_recover(path, comm, comm == NULL ? 0 : sizeof *comm, exists));
}

tailrace_error tailrace_fortran_close(tailrace_file* file) {
  NEEDS_OPEN(file, "file", "close");
  return passed_on(tailrace_file_close(file));
}

/* Split texts, each ended by a zero, into the file's order. */
static tailrace_error reversed_names(const char* texts, int n_names, size_t n_dims,
                                     const char** names) {
  if ((size_t)n_names != n_dims) return fail("dims has %d names, must have %zu", n_names, n_dims);
  for (size_t d = 0; d < n_dims; ++d) {
    names[n_dims - 1 - d] = texts;
    texts += strlen(texts) + 1;
  }
  return TAILRACE_OK;
}

/* Return a text, or NULL in place of an empty one. */
static const char* text_or_null(const char* text) { return text[0] == '\0' ? NULL : text; }

/* Define a field. `chunk`: NULL, or the extents of chunks. `n_names`: -1 for no names. */
tailrace_error tailrace_fortran_define(tailrace_file* file, const char* path, int dtype,
                                       const CFI_cdesc_t* shape, const CFI_cdesc_t* chunk,
                                       const char* texts, int n_names, const char* time_name,
                                       const char* options, uint64_t* field, size_t* n_dims) {
  uint64_t extents[TAILRACE_RANK_MAX];
  const char* names[TAILRACE_RANK_MAX];
  NEEDS_OPEN(file, "file", "define");
  *n_dims = SIZE_MAX;
  tailrace_error error = reversed(shape, "shape", 0, n_dims, extents);
  if (error == TAILRACE_OK && n_names >= 0) error = reversed_names(texts, n_names, *n_dims, names);
  if (error != TAILRACE_OK) return remembered(file, named("field", path, error));
  char* const all = malloc(strlen(options) + (size_t)32 * (TAILRACE_RANK_MAX + 1));
  if (all == NULL) {
    return remembered(file, named("field", path, fail("not enough memory for the options")));
  }
  strcpy(all, options);
  if (chunk != NULL) {
    uint64_t of_chunk[TAILRACE_RANK_MAX];
    size_t n_given = SIZE_MAX; /* With over_time one more than the shape. */
    error = reversed(chunk, "chunk", 0, &n_given, of_chunk);
    char* end = all + strlen(all);
    if (error == TAILRACE_OK) end += sprintf(end, "%schunk=", end == all ? "" : ",");
    for (size_t d = 0; error == TAILRACE_OK && d < n_given; ++d) {
      end += sprintf(end, "%s%llu", d == 0 ? "" : "x", (unsigned long long)of_chunk[d]);
    }
  }
  if (error == TAILRACE_OK) {
    error = passed_on(
        n_names < 0
            ? tailrace_field_define(file, path, (tailrace_dtype)dtype, *n_dims, extents, all, field)
            : tailrace_field_define_named(file, path, (tailrace_dtype)dtype, *n_dims, extents,
                                          names, text_or_null(time_name), all, field));
  }
  free(all);
  return remembered(file, named("field", path, error));
}

static tailrace_error put_values(tailrace_file* file, uint64_t field, int dtype, size_t n_dims,
                                 const CFI_cdesc_t* start, const CFI_cdesc_t* count,
                                 const CFI_cdesc_t* values, int copies) {
  NEEDS_OPEN(file, "file", "put");
  if (field == UINT64_MAX) return fail("put: the field is not defined; call define before it");
  if (!fits(values, (tailrace_dtype)dtype)) {
    char text[64];
    return fail("values have type %s, the field has type %s", type_text(values, text, sizeof text),
                dtype_text((tailrace_dtype)dtype));
  }
  box part;
  const tailrace_error error = box_of(n_dims, start, count, values, &part);
  if (error != TAILRACE_OK) return error;
  if (is_dense(values)) {
    const void* const address = part.n_elements == 0 ? NULL : values->base_addr;
    return passed_on(copies ? tailrace_field_put_copy(file, field, part.start, part.count, address)
                            : tailrace_field_put(file, field, part.start, part.count, address));
  }
  int same_shape = (size_t)values->rank == n_dims;
  int64_t strides[TAILRACE_RANK_MAX];
  for (size_t d = 0; same_shape && d < n_dims; ++d) {
    same_shape = (uint64_t)values->dim[d].extent == part.count[n_dims - 1 - d];
    strides[n_dims - 1 - d] = values->dim[d].sm;
  }
  if (same_shape) {
    return passed_on(copies ? tailrace_field_put_strided_copy(file, field, part.start, part.count,
                                                              values->base_addr, strides)
                            : tailrace_field_put_strided(file, field, part.start, part.count,
                                                         values->base_addr, strides));
  }
  if (!copies) {
    return fail(
        "copy=.false. with count= of another shape needs contiguous values; pass "
        "copy=.true. or a contiguous array");
  }
  char* const dense = malloc(part.n_elements * values->elem_len);
  if (dense == NULL) return fail("not enough memory to copy %zu values", part.n_elements);
  copy_elements(values, dense, 1);
  const tailrace_error put =
      passed_on(tailrace_field_put_copy(file, field, part.start, part.count, dense));
  free(dense);
  return put;
}

tailrace_error tailrace_fortran_put(tailrace_file* file, uint64_t field, int dtype, size_t n_dims,
                                    const CFI_cdesc_t* start, const CFI_cdesc_t* count,
                                    const CFI_cdesc_t* values, int copies) {
  const char* const path = tailrace_field_path(file, field);
  if (path == NULL) return passed_on(tailrace_field_put(file, field, NULL, NULL, NULL));
  return remembered(
      file,
      named("field", path, put_values(file, field, dtype, n_dims, start, count, values, copies)));
}

tailrace_error tailrace_fortran_copy_from_device(tailrace_file* file, tailrace_copy_callback copy,
                                                 void* user) {
  return passed_on(tailrace_file_set_copy_from_device(file, copy, user));
}

static tailrace_error put_device(tailrace_file* file, uint64_t field, size_t n_dims,
                                 const CFI_cdesc_t* start, const CFI_cdesc_t* count,
                                 const void* address) {
  uint64_t from[TAILRACE_RANK_MAX] = {0};
  uint64_t extents[TAILRACE_RANK_MAX] = {0};
  tailrace_error error = TAILRACE_OK;
  if (start != NULL) error = reversed(start, "start", 1, &n_dims, from);
  if (error != TAILRACE_OK) return error;
  if (count != NULL) {
    error = reversed(count, "count", 0, &n_dims, extents);
    if (error != TAILRACE_OK) return error;
  } else if (n_dims > 0) {
    return fail("put_device needs count=, since an address has no extents");
  }
  return passed_on(tailrace_field_put_device(file, field, from, extents, address));
}

tailrace_error tailrace_fortran_put_device(tailrace_file* file, uint64_t field, size_t n_dims,
                                           const CFI_cdesc_t* start, const CFI_cdesc_t* count,
                                           const void* address) {
  const char* const path = tailrace_field_path(file, field);
  if (path == NULL) return passed_on(tailrace_field_put_device(file, field, NULL, NULL, NULL));
  return remembered(file,
                    named("field", path, put_device(file, field, n_dims, start, count, address)));
}

/* Return the dtype of a list's elements, without the unsigned ones; 0: none fits. */
static tailrace_dtype dtype_of(const CFI_cdesc_t* list) {
  for (int dtype = TAILRACE_F32; dtype <= TAILRACE_I64; ++dtype) {
    if (fits(list, (tailrace_dtype)dtype)) return (tailrace_dtype)dtype;
  }
  return (tailrace_dtype)0;
}

static tailrace_error set_coordinate(tailrace_file* file, const char* path,
                                     const CFI_cdesc_t* values, const char* units) {
  NEEDS_OPEN(file, "file", "set_coordinate");
  const tailrace_dtype dtype = dtype_of(values);
  if (dtype == 0 || values->rank != 1 || is_assumed_size(values)) {
    return fail("values must be a list of reals or integers");
  }
  const size_t n = n_elements_of(values);
  char* const dense = malloc((n + 1) * values->elem_len);
  if (dense == NULL) return fail("not enough memory for %zu values", n);
  copy_elements(values, dense, 1);
  const tailrace_error error =
      passed_on(tailrace_coordinate_set(file, path, dtype, n, dense, text_or_null(units)));
  free(dense);
  return error;
}

tailrace_error tailrace_fortran_coordinate(tailrace_file* file, const char* path,
                                           const CFI_cdesc_t* values, const char* units) {
  return remembered(file, named("coordinate", path, set_coordinate(file, path, values, units)));
}

tailrace_error tailrace_fortran_time(tailrace_file* file, const char* path, double value,
                                     const char* units) {
  NEEDS_OPEN(file, "file", "set_time");
  return passed_on(tailrace_time_set(file, text_or_null(path), value, text_or_null(units)));
}

static double real_at(const CFI_cdesc_t* list, size_t i) {
  float f32;
  double f64;
  if (list->elem_len == sizeof f32) {
    memcpy(&f32, element_at(list, i), sizeof f32);
    return f32;
  }
  memcpy(&f64, element_at(list, i), sizeof f64);
  return f64;
}

static tailrace_error set_attribute(tailrace_file* file, const char* path, const char* name,
                                    const CFI_cdesc_t* value) {
  NEEDS_OPEN(file, "file", "set_attribute");
  const int real = is_real(value->type);
  if ((!real && !is_signed_integer(value->type)) || value->elem_len > 8 || value->rank > 1) {
    return fail("attribute \"%s\" must be a real or integer number, or a list of these", name);
  }
  const size_t n = n_elements_of(value);
  int64_t* const integers = malloc(8 * (n + 1));
  if (integers == NULL) return fail("attribute \"%s\": not enough memory for its values", name);
  double* const reals = (double*)(void*)integers;
  for (size_t i = 0; i < n; ++i) {
    if (real) {
      reals[i] = real_at(value, i);
    } else {
      integers[i] = integer_at(value, i);
    }
  }
  const tailrace_error error =
      passed_on(real ? tailrace_attribute_set_f64(file, path, name, n, reals)
                     : tailrace_attribute_set_i64(file, path, name, n, integers));
  free(integers);
  return error;
}

tailrace_error tailrace_fortran_attribute(tailrace_file* file, const char* path, const char* name,
                                          const CFI_cdesc_t* value) {
  return remembered(file, set_attribute(file, path, name, value));
}

tailrace_error tailrace_fortran_text_attribute(tailrace_file* file, const char* path,
                                               const char* name, const char* text) {
  NEEDS_OPEN(file, "file", "set_attribute");
  return passed_on(tailrace_attribute_set_text(file, path, name, text));
}

tailrace_error tailrace_fortran_fail_step(tailrace_file* file, const char* why) {
  NEEDS_OPEN(file, "file", "fail_step");
  return passed_on(tailrace_file_fail_step(file, why));
}

/* Report in the layout of type tailrace_report in tailrace.f90. */
typedef struct {
  int64_t step_index, n_fields, raw_bytes, encoded_bytes, file_bytes, n_writes, peak_memory_bytes;
  double ratio, step_s, encode_s, write_s, makespan_s, hidden_share, sync_s, commit_s, exposed_s,
      idle_encode_s;
  int is_there;
  int64_t n_waiting_steps, waiting_bytes;
} fortran_report;

tailrace_error tailrace_fortran_end_step(tailrace_file* file, int waits, fortran_report* report) {
  const tailrace_step_report* step = NULL;
  memset(report, 0, sizeof *report);
  if (file == NULL && waits) NEEDS_OPEN(file, "file", "wait");
  NEEDS_OPEN(file, "file", "end_step");
  const tailrace_error error =
      passed_on(waits ? tailrace_file_wait(file, &step) : tailrace_file_end_step(file, &step));
  if (step == NULL) return error;
  *report = (fortran_report){
      .step_index = (int64_t)step->step_index + 1,
      .n_fields = (int64_t)step->n_fields,
      .raw_bytes = (int64_t)step->raw_bytes,
      .encoded_bytes = (int64_t)step->encoded_bytes,
      .file_bytes = (int64_t)step->file_bytes,
      .n_writes = (int64_t)step->n_writes,
      .peak_memory_bytes = (int64_t)step->peak_memory_bytes,
      .ratio = step->ratio,
      .step_s = step->step_s,
      .encode_s = step->encode_s,
      .write_s = step->write_s,
      .makespan_s = step->makespan_s,
      .hidden_share = step->hidden_share,
      .sync_s = step->sync_s,
      .commit_s = step->commit_s,
      .exposed_s = step->exposed_s,
      .idle_encode_s = step->idle_encode_s,
      .is_there = 1,
      .n_waiting_steps = (int64_t)step->n_waiting_steps,
      .waiting_bytes = (int64_t)step->waiting_bytes,
  };
  return error;
}

/* ----- readers */

tailrace_error tailrace_fortran_reader(const char* path, const int* comm, const char* options,
                                       tailrace_reader** reader) {
  if (*reader != NULL) return fail("the reader variable is already in use; close its reader first");
#ifdef TAILRACE_WITH_MPI
  if (comm != NULL) {
    MPI_Comm converted = MPI_Comm_f2c((MPI_Fint)*comm);
    return passed_on(tailrace_reader_open(path, &converted, sizeof(MPI_Comm), options, reader));
  }
#endif
  return passed_on(
      tailrace_reader_open(path, comm, comm == NULL ? 0 : sizeof *comm, options, reader));
}

tailrace_error tailrace_fortran_reader_close(tailrace_reader* reader) {
  return passed_on(tailrace_reader_close(reader));
}

tailrace_error tailrace_fortran_refresh(tailrace_reader* reader) {
  return passed_on(tailrace_reader_refresh(reader));
}

/* Describe the dataset of a path: dtype 0 if it is not numeric; extents in Fortran's order. */
tailrace_error tailrace_fortran_inquire(tailrace_reader* reader, const char* path, size_t* dataset,
                                        int* dtype, int* n_dims, int64_t* extents) {
  NEEDS_OPEN(reader, "reader", "read or inquire");
  tailrace_dataset_info info;
  tailrace_error error = passed_on(tailrace_reader_find(reader, path, dataset));
  if (error == TAILRACE_OK) {
    error = passed_on(tailrace_reader_dataset(reader, *dataset, &info));
  }
  if (error != TAILRACE_OK) return error;
  *dtype = info.is_number ? (int)info.dtype : 0;
  *n_dims = (int)info.n_dims;
  for (size_t d = 0; d < info.n_dims; ++d) {
    extents[d] = (int64_t)info.shape[info.n_dims - 1 - d];
  }
  return error;
}

/* Return the name of an attribute by its number, from 1; NULL if the number is too large. */
const char* tailrace_fortran_attribute_name(const tailrace_reader* reader, const char* object,
                                            int64_t number) {
  tailrace_attribute_info info;
  if (number < 1 ||
      tailrace_reader_attribute(reader, object, (size_t)(number - 1), &info) != TAILRACE_OK) {
    return NULL;
  }
  return info.name;
}

tailrace_error tailrace_fortran_n_attributes(const tailrace_reader* reader, const char* object,
                                             int64_t* n) {
  size_t n_attributes = 0;
  const tailrace_error error =
      passed_on(tailrace_reader_n_attributes(reader, object, &n_attributes));
  *n = (int64_t)n_attributes;
  return error;
}

/* Return the number of values of an attribute. `texts`: it must be text, else numbers; `n_wanted`:
 * SIZE_MAX, or the number that it must have. */
tailrace_error tailrace_fortran_attribute_values(const tailrace_reader* reader, const char* object,
                                                 const char* name, int texts, size_t n_wanted,
                                                 size_t* n_values) {
  tailrace_attribute_info info;
  *n_values = 0;
  const tailrace_error error =
      passed_on(tailrace_reader_find_attribute(reader, object, name, &info));
  if (error != TAILRACE_OK) return error;
  const int fits = texts ? info.texts != NULL : info.is_number;
  if (!fits) {
    return fail("attribute \"%s\" of \"%s\": it is %s, not %s", name, object, info.type_text,
                texts ? "text" : "numbers");
  }
  if (n_wanted != SIZE_MAX && n_wanted != info.n_values) {
    return fail("attribute \"%s\" of \"%s\": it has %zu values; pass an allocatable array", name,
                object, info.n_values);
  }
  *n_values = info.n_values;
  return TAILRACE_OK;
}

/* Return one text of an attribute; NULL if it has no such text. */
const char* tailrace_fortran_attribute_text(const tailrace_reader* reader, const char* object,
                                            const char* name, int64_t number) {
  tailrace_attribute_info info;
  if (tailrace_reader_find_attribute(reader, object, name, &info) != TAILRACE_OK ||
      info.texts == NULL || number < 1 || (uint64_t)number > info.n_values) {
    return NULL;
  }
  return info.texts[number - 1];
}

/* Copy the numbers of an attribute: real if `f64` is not NULL, else integers. */
tailrace_error tailrace_fortran_attribute_numbers(const tailrace_reader* reader, const char* object,
                                                  const char* name, size_t n_values, double* f64,
                                                  int64_t* i64) {
  return passed_on(f64 != NULL ? tailrace_attribute_get_f64(reader, object, name, n_values, f64)
                               : tailrace_attribute_get_i64(reader, object, name, n_values, i64));
}

/* An integer attribute that the program's kind cannot hold. */
tailrace_error tailrace_fortran_too_wide(const char* object, const char* name, int64_t value) {
  return fail("attribute \"%s\" of \"%s\": %lld does not fit the integer variable", name, object,
              (long long)value);
}

tailrace_error tailrace_fortran_n_steps(const tailrace_reader* reader, const char* path,
                                        int64_t* n_steps) {
  uint64_t n = 0;
  const tailrace_error error =
      passed_on(tailrace_reader_n_steps(reader, path[0] == '\0' ? NULL : path, &n));
  *n_steps = (int64_t)n;
  return error;
}

/* Return the path of a dataset by its number, from 1; NULL if the number is too large. */
const char* tailrace_fortran_path(const tailrace_reader* reader, int64_t number) {
  tailrace_dataset_info info;
  if (number < 1 || (uint64_t)number > tailrace_reader_n_datasets(reader) ||
      tailrace_reader_dataset(reader, (size_t)(number - 1), &info) != TAILRACE_OK) {
    return NULL;
  }
  return info.path;
}

#define NO_STEP (-INT64_MAX) /* no_step of tailrace.f90: read the dataset, not a step of it */

/* The requested slab, and the memory for its elements. */
typedef struct {
  tailrace_read_request request;
  box part;
  uint64_t stride[TAILRACE_RANK_MAX];
  char* dense; /* Not NULL: `values` has gaps. */
} reading;

static tailrace_error prepare_reading(tailrace_reader* reader, const char* path, int64_t step,
                                      const CFI_cdesc_t* start, const CFI_cdesc_t* count,
                                      const CFI_cdesc_t* stride, const CFI_cdesc_t* values,
                                      reading* made) {
  size_t dataset = 0;
  int dtype = 0;
  int n_dims = 0;
  int64_t extents[TAILRACE_RANK_MAX];
  tailrace_error error = tailrace_fortran_inquire(reader, path, &dataset, &dtype, &n_dims, extents);
  if (error != TAILRACE_OK) return error;
  if (dtype == 0) return fail("does not contain numbers");
  if (!fits(values, (tailrace_dtype)dtype)) {
    char text[64];
    return fail("has type %s, values have type %s", dtype_text((tailrace_dtype)dtype),
                type_text(values, text, sizeof text));
  }
  size_t n = (size_t)n_dims;
  if (step != NO_STEP) {
    uint64_t n_steps = 0;
    error = passed_on(tailrace_reader_n_steps(reader, path, &n_steps));
    if (error != TAILRACE_OK) return error;
    if (step < 1 || (uint64_t)step > n_steps) {
      return fail("step %lld does not exist; it has %llu, counted from 1", (long long)step,
                  (unsigned long long)n_steps);
    }
    --n;
  }
  error = box_of(n, start, count, values, &made->part);
  if (error == TAILRACE_OK && step != NO_STEP) { /* Time is the file's first dimension. */
    memmove(made->part.start + 1, made->part.start, n * sizeof *made->part.start);
    memmove(made->part.count + 1, made->part.count, n * sizeof *made->part.count);
    made->part.start[0] = (uint64_t)(step - 1);
    made->part.count[0] = 1;
  }
  if (error == TAILRACE_OK && stride != NULL) {
    error = reversed(stride, "stride", 0, &n, made->stride);
  }
  if (error != TAILRACE_OK) return error;
  const size_t n_bytes = made->part.n_elements * values->elem_len;
  if (!is_dense(values)) {
    made->dense = malloc(n_bytes);
    if (made->dense == NULL)
      return fail("not enough memory to copy %zu values", made->part.n_elements);
  }
  made->request = (tailrace_read_request){
      .dataset = dataset,
      .start = made->part.start,
      .count = made->part.count,
      .stride = stride == NULL ? NULL : made->stride,
      .values = made->dense != NULL ? made->dense : values->base_addr,
      .n_bytes = n_bytes,
  };
  return TAILRACE_OK;
}

/* Read a slab. `step`: of this step, from 1, without the dimension time; NO_STEP: of the dataset.
 * `collective`: all ranks call it, and a chunk that several ranks need is decoded once. If one
 * rank's request is invalid, all fail. */
tailrace_error tailrace_fortran_read(tailrace_reader* reader, const char* path, int64_t step,
                                     const CFI_cdesc_t* start, const CFI_cdesc_t* count,
                                     const CFI_cdesc_t* stride, const CFI_cdesc_t* values,
                                     int collective) {
  reading made;
  memset(&made, 0, sizeof made);
  tailrace_error error = named(
      "dataset", path, prepare_reading(reader, path, step, start, count, stride, values, &made));
  tailrace_read_request* const it = &made.request;
  if (error == TAILRACE_OK) {
    error = passed_on(collective ? tailrace_reader_read_all(reader, 1, it)
                                 : tailrace_reader_read(reader, it->dataset, it->start, it->count,
                                                        it->stride, it->values, it->n_bytes));
  } else if (collective) {
    char reason[sizeof own_text];
    snprintf(reason, sizeof reason, "%s", tailrace_fortran_error());
    error = passed_on(tailrace_reader_fail_read_all(reader, error, reason));
  }
  if (made.dense != NULL && error == TAILRACE_OK) copy_elements(values, made.dense, 0);
  free(made.dense);
  return error;
}
