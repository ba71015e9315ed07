/* A program on PnetCDF whose files scripts/reader-matrix passes to readers: dimensions, a record
 * dimension that grows, texts, and a variable with many attributes.
 *
 *   matrix_records FILE
 */

#include "show.h"

enum { N_RECORDS = 5, N_ROWS = 20, N_COLUMNS = 24, N_ATTRIBUTES = 12 };

#define CHECK(call)                                                  \
  do {                                                               \
    const int status = (call);                                       \
    if (status != NC_NOERR) {                                        \
      fprintf(stderr, "%d: %s\n", __LINE__, ncmpi_strerror(status)); \
      MPI_Abort(MPI_COMM_WORLD, 1);                                  \
    }                                                                \
  } while (0)

/* Multiples of 1/64, so that all sums are exact in any order. */
static float value_at(int record, int i) {
  return (float)((i * 7 + record * 5) % 4096) / 64.0f + 100.0f;
}

int main(int argc, char** argv) {
  static float field[N_ROWS * N_COLUMNS];
  static int count[N_ROWS * N_COLUMNS];
  int file, dims[3], time, tas, counts, name;
  start(&argc, &argv);
  CHECK(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
  CHECK(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
  CHECK(ncmpi_def_dim(file, "y", N_ROWS, &dims[1]));
  CHECK(ncmpi_def_dim(file, "x", N_COLUMNS, &dims[2]));
  CHECK(ncmpi_def_var(file, "time", NC_DOUBLE, 1, dims, &time));
  CHECK(ncmpi_def_var(file, "tas", NC_FLOAT, 3, dims, &tas));
  CHECK(ncmpi_def_var(file, "count", NC_INT, 2, dims + 1, &counts));
  CHECK(ncmpi_def_var(file, "name", NC_CHAR, 1, dims + 1, &name));
  CHECK(ncmpi_put_att_text(file, NC_GLOBAL, "title", 7, "records"));
  CHECK(ncmpi_put_att_text(file, tas, "units", 1, "K"));
  for (int i = 1; i <= N_ATTRIBUTES; ++i) {
    char text[16];
    const double number = i / 4.0;
    snprintf(text, sizeof text, "a%02d", i);
    CHECK(ncmpi_put_att_double(file, tas, text, NC_DOUBLE, 1, &number));
  }
  CHECK(ncmpi_enddef(file));
  for (int record = 0; record < N_RECORDS; ++record) {
    const MPI_Offset first[3] = {record, 0, 0}, extents[3] = {1, N_ROWS, N_COLUMNS};
    const double now = record / 2.0;
    for (int i = 0; i < N_ROWS * N_COLUMNS; ++i) field[i] = value_at(record, i);
    CHECK(ncmpi_put_vara_double_all(file, time, first, extents, &now));
    CHECK(ncmpi_put_vara_float_all(file, tas, first, extents, field));
  }
  for (int i = 0; i < N_ROWS * N_COLUMNS; ++i) count[i] = i * 3 - 100;
  CHECK(ncmpi_put_var_int_all(file, counts, count));
  CHECK(ncmpi_put_var_text_all(file, name, "abcdefghijklmnopqrst"));
  CHECK(ncmpi_close(file));
  MPI_Finalize();
  return 0;
}
