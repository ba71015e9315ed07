/* Every form of blocking access: var, var1, vara, vars, varm, varn, mput and mget, typed and
 * flexible, collective and independent, with type conversion. Prints sums over the values that are
 * read. */

#include "show.h"

#include <string.h>

enum { ROWS = 6, COLUMNS = 10 };

static int file_id, dims[2];

/* Each rank's rows: [first, first + n) of ROWS * n_ranks. */
static MPI_Offset first_row(void) { return (MPI_Offset)rank * ROWS; }

#define FORMS(suffix, T, nc_type)                                                         \
  static void forms_##suffix(int whole, int part) {                                       \
    const MPI_Offset n = (MPI_Offset)ROWS * n_ranks * COLUMNS;                            \
    T *all = malloc((size_t)n * sizeof(T)), *back = calloc((size_t)n, sizeof(T));         \
    T mine[ROWS * COLUMNS], got[ROWS * COLUMNS];                                          \
    for (long i = 0; i < n; ++i) all[i] = (T)(i % 100);                                   \
    for (int i = 0; i < ROWS * COLUMNS; ++i) mine[i] = (T)((i * 3 + rank) % 120);         \
    MUST(ncmpi_put_var_##suffix##_all(file_id, whole, all));                              \
    MUST(ncmpi_get_var_##suffix##_all(file_id, whole, back));                             \
    SHOW_VALUES("var " #suffix, back, n);                                                 \
    MPI_Offset start[2] = {first_row(), 0}, count[2] = {ROWS, COLUMNS};                   \
    MUST(ncmpi_put_vara_##suffix##_all(file_id, part, start, count, mine));               \
    memset(got, 0, sizeof(got));                                                          \
    MUST(ncmpi_get_vara_##suffix##_all(file_id, part, start, count, got));                \
    SHOW_VALUES("vara " #suffix, got, ROWS* COLUMNS);                                     \
    MPI_Offset half[2] = {ROWS / 2, COLUMNS / 2}, stride[2] = {2, 2};                     \
    MUST(ncmpi_put_vars_##suffix##_all(file_id, part, start, half, stride, mine));        \
    MUST(ncmpi_get_vars_##suffix##_all(file_id, part, start, half, stride, got));         \
    SHOW_VALUES("vars " #suffix, got, ROWS* COLUMNS);                                     \
    MPI_Offset turned[2] = {1, ROWS}; /* column by column in memory */                    \
    MUST(ncmpi_put_varm_##suffix##_all(file_id, part, start, count, NULL, turned, mine)); \
    MUST(ncmpi_get_varm_##suffix##_all(file_id, part, start, count, NULL, turned, got));  \
    SHOW_VALUES("varm " #suffix, got, ROWS* COLUMNS);                                     \
    MUST(ncmpi_get_vara_##suffix##_all(file_id, part, start, count, got));                \
    SHOW_VALUES("varm as stored " #suffix, got, ROWS* COLUMNS);                           \
    MPI_Offset at[2] = {first_row() + 1, 3};                                              \
    MUST(ncmpi_put_var1_##suffix##_all(file_id, part, at, &mine[7]));                     \
    MUST(ncmpi_get_var1_##suffix##_all(file_id, part, at, &got[0]));                      \
    SHOW_VALUES("var1 " #suffix, got, 1);                                                 \
    MPI_Offset a[2] = {first_row(), 2}, b[2] = {first_row() + 4, 5}, *starts[2] = {a, b}; \
    MPI_Offset ca[2] = {2, 3}, cb[2] = {1, 4}, *counts[2] = {ca, cb};                     \
    MUST(ncmpi_put_varn_##suffix##_all(file_id, part, 2, starts, counts, mine));          \
    MUST(ncmpi_get_varn_##suffix##_all(file_id, part, 2, starts, counts, got));           \
    SHOW_VALUES("varn " #suffix, got, 10);                                                \
    MUST(ncmpi_begin_indep_data(file_id));                                                \
    MUST(ncmpi_put_vara_##suffix(file_id, part, start, count, mine));                     \
    MUST(ncmpi_put_vars_##suffix(file_id, part, start, half, stride, mine));              \
    MUST(ncmpi_put_var1_##suffix(file_id, part, at, &mine[9]));                           \
    MUST(ncmpi_get_vara_##suffix(file_id, part, start, count, got));                      \
    MUST(ncmpi_end_indep_data(file_id));                                                  \
    SHOW_VALUES("alone " #suffix, got, ROWS* COLUMNS);                                    \
    int both[2] = {part, whole};                                                          \
    MPI_Offset *two_starts[2] = {start, start}, *two_counts[2] = {count, count};          \
    T more[ROWS * COLUMNS], *bufs[2] = {mine, got}, *gots[2] = {back, more};              \
    MUST(ncmpi_mput_vara_##suffix##_all(file_id, 2, both, two_starts, two_counts, bufs)); \
    MUST(ncmpi_mget_vara_##suffix##_all(file_id, 2, both, two_starts, two_counts, gots)); \
    SHOW_VALUES("mget " #suffix, back, ROWS* COLUMNS);                                    \
    SHOW_VALUES("mget second " #suffix, more, ROWS* COLUMNS);                             \
    free(all);                                                                            \
    free(back);                                                                           \
  }

FORMS(schar, signed char, NC_BYTE)
FORMS(uchar, unsigned char, NC_UBYTE)
FORMS(short, short, NC_SHORT)
FORMS(ushort, unsigned short, NC_USHORT)
FORMS(int, int, NC_INT)
FORMS(uint, unsigned int, NC_UINT)
FORMS(long, long, NC_INT)
FORMS(float, float, NC_FLOAT)
FORMS(double, double, NC_DOUBLE)
FORMS(longlong, long long, NC_INT64)
FORMS(ulonglong, unsigned long long, NC_UINT64)
FORMS(text, char, NC_CHAR)

/* A memory layout with gaps, and a type other than the variable's. */
static void flexible(int part) {
  MPI_Datatype holes, block;
  int padded[ROWS * (COLUMNS + 4)], back[ROWS * (COLUMNS + 4)];
  for (int i = 0; i < ROWS * (COLUMNS + 4); ++i) padded[i] = i - 7 * rank, back[i] = -5;
  const int shape[2] = {ROWS, COLUMNS + 4}, size[2] = {ROWS, COLUMNS}, corner[2] = {0, 2};
  MPI_Type_create_subarray(2, shape, size, corner, MPI_ORDER_C, MPI_INT, &holes);
  MPI_Type_commit(&holes);
  MPI_Offset start[2] = {first_row(), 0}, count[2] = {ROWS, COLUMNS};
  MUST(ncmpi_put_vara_all(file_id, part, start, count, padded, 1, holes));
  MUST(ncmpi_get_vara_all(file_id, part, start, count, back, 1, holes));
  SHOW_VALUES("flexible", back, ROWS * (COLUMNS + 4));
  MPI_Type_contiguous(COLUMNS, MPI_DOUBLE, &block);
  MPI_Type_commit(&block);
  double dense[ROWS * COLUMNS];
  MUST(ncmpi_get_vara_all(file_id, part, start, count, dense, ROWS, block));
  SHOW_VALUES("flexible double", dense, ROWS * COLUMNS);
  MPI_Offset turned[2] = {1, ROWS};
  MUST(ncmpi_get_varm_all(file_id, part, start, count, NULL, turned, back, 1, holes));
  SHOW_VALUES("flexible varm", back, ROWS * (COLUMNS + 4));
  SHOW(ncmpi_get_vara_all(file_id, part, start, count, dense, ROWS + 1, block));
  MUST(ncmpi_get_vara_all(file_id, part, start, count, back, 0, MPI_DATATYPE_NULL));
  MPI_Type_free(&holes);
  MPI_Type_free(&block);
}

int main(int argc, char** argv) {
  start(&argc, &argv);
  static const nc_type types[] = {NC_BYTE,  NC_UBYTE,  NC_SHORT, NC_USHORT, NC_INT, NC_UINT,
                                  NC_FLOAT, NC_DOUBLE, NC_INT64, NC_UINT64, NC_CHAR};
  static const char* names[] = {"schar", "uchar",  "short",    "ushort",    "int", "uint",
                                "float", "double", "longlong", "ulonglong", "text"};
  int whole[11], part[11];
  MUST(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file_id));
  MUST(ncmpi_def_dim(file_id, "row", (MPI_Offset)ROWS * n_ranks, &dims[0]));
  MUST(ncmpi_def_dim(file_id, "column", COLUMNS, &dims[1]));
  for (int i = 0; i < 11; ++i) {
    char name[32];
    snprintf(name, sizeof(name), "whole_%s", names[i]);
    MUST(ncmpi_def_var(file_id, name, types[i], 2, dims, &whole[i]));
    snprintf(name, sizeof(name), "part_%s", names[i]);
    MUST(ncmpi_def_var(file_id, name, types[i], 2, dims, &part[i]));
  }
  MUST(ncmpi_enddef(file_id));
  /* First the variables' own types, then all combinations; the values fit every type. */
  forms_schar(whole[0], part[0]);
  forms_uchar(whole[1], part[1]);
  forms_short(whole[2], part[2]);
  forms_ushort(whole[3], part[3]);
  forms_int(whole[4], part[4]);
  forms_uint(whole[5], part[5]);
  forms_float(whole[6], part[6]);
  forms_double(whole[7], part[7]);
  forms_longlong(whole[8], part[8]);
  forms_ulonglong(whole[9], part[9]);
  forms_text(whole[10], part[10]);
  forms_long(whole[0], part[9]);
  forms_double(whole[0], part[1]);
  forms_float(whole[4], part[8]);
  forms_schar(whole[7], part[6]);
  forms_ulonglong(whole[2], part[6]);
  forms_int(whole[6], part[9]);
  flexible(part[7]);
  MUST(ncmpi_close(file_id));
  MPI_Finalize();
  return 0;
}
