/* Dimensions, variables and attributes: definition, all types with conversion, renaming, copying,
 * deletion, queries, and netCDF's errors for each. */

#include "show.h"

#include <string.h>

static void show_attributes(int file, int variable) {
  int n = 0;
  MUST(ncmpi_inq_varnatts(file, variable, &n));
  for (int i = 0; i < n; ++i) {
    char name[NC_MAX_NAME + 1];
    nc_type type;
    MPI_Offset length;
    double values[32] = {0};
    MUST(ncmpi_inq_attname(file, variable, i, name));
    MUST(ncmpi_inq_att(file, variable, name, &type, &length));
    if (type == NC_CHAR) {
      char text[128] = "";
      MUST(ncmpi_get_att_text(file, variable, name, text));
      if (rank == 0) printf("%d %s: \"%.*s\"\n", variable, name, (int)length, text);
      continue;
    }
    MUST(ncmpi_get_att_double(file, variable, name, values));
    if (rank == 0) {
      printf("%d %s (type %d):", variable, name, type);
      for (int k = 0; k < length; ++k) printf(" %.9g", values[k]);
      printf("\n");
    }
  }
}

static void attributes(int file, int variable) {
  const signed char c[3] = {-1, 2, 3};
  const unsigned char uc[2] = {200, 7};
  const short s[2] = {-300, 300};
  const unsigned short us[2] = {60000, 1};
  const int i[2] = {-70000, 70000};
  const unsigned int ui[1] = {4000000000u};
  const long l[2] = {-5, 6};
  const float f[2] = {1.5f, -2.5f};
  const double d[2] = {1e300, -0.25};
  const long long ll[2] = {-5000000000LL, 1};
  const unsigned long long ull[1] = {18000000000000000000ULL};
  SHOW(ncmpi_put_att_text(file, variable, "text", 5, "hello"));
  SHOW(ncmpi_put_att_text(file, variable, "empty", 0, ""));
  SHOW(ncmpi_put_att_schar(file, variable, "schar", NC_SHORT, 3, c));
  SHOW(ncmpi_put_att_uchar(file, variable, "uchar", NC_UBYTE, 2, uc));
  SHOW(ncmpi_put_att_uchar(file, variable, "uchar into byte", NC_BYTE, 2, uc));
  SHOW(ncmpi_put_att_short(file, variable, "short", NC_SHORT, 2, s));
  SHOW(ncmpi_put_att_short(file, variable, "short into byte", NC_BYTE, 2, s));
  SHOW(ncmpi_put_att_ushort(file, variable, "ushort", NC_USHORT, 2, us));
  SHOW(ncmpi_put_att_int(file, variable, "int", NC_DOUBLE, 2, i));
  SHOW(ncmpi_put_att_uint(file, variable, "uint", NC_UINT, 1, ui));
  SHOW(ncmpi_put_att_long(file, variable, "long", NC_INT64, 2, l));
  SHOW(ncmpi_put_att_float(file, variable, "float", NC_FLOAT, 2, f));
  SHOW(ncmpi_put_att_float(file, variable, "float into int", NC_INT, 2, f));
  SHOW(ncmpi_put_att_double(file, variable, "double", NC_DOUBLE, 2, d));
  SHOW(ncmpi_put_att_double(file, variable, "double into float", NC_FLOAT, 2, d));
  SHOW(ncmpi_put_att_longlong(file, variable, "longlong", NC_INT64, 2, ll));
  SHOW(ncmpi_put_att_ulonglong(file, variable, "ulonglong", NC_UINT64, 1, ull));
  SHOW(ncmpi_put_att(file, variable, "native", NC_DOUBLE, 2, d));
  SHOW(ncmpi_put_att_int(file, variable, "as text", NC_CHAR, 2, i));
  SHOW(ncmpi_put_att_int(file, variable, "no type", 77, 2, i));
  SHOW(ncmpi_put_att_int(file, variable, "no/name", NC_INT, 2, i));
  SHOW(ncmpi_put_att_int(file, variable, "", NC_INT, 2, i));
  SHOW(ncmpi_put_att_int(file, variable, "none", NC_INT, 1, NULL));
  show_attributes(file, variable);
  int n = -1;
  double wide[3];
  signed char narrow[3];
  SHOW(ncmpi_inq_attid(file, variable, "float", &n));
  SHOW_NUMBER(n);
  SHOW(ncmpi_get_att_schar(file, variable, "short", narrow));
  SHOW(ncmpi_get_att_double(file, variable, "text", wide));
  SHOW(ncmpi_get_att_double(file, variable, "missing", wide));
  SHOW(ncmpi_rename_att(file, variable, "text", "renamed"));
  SHOW(ncmpi_rename_att(file, variable, "missing", "there"));
  SHOW(ncmpi_rename_att(file, variable, "renamed", "short"));
  SHOW(ncmpi_del_att(file, variable, "schar"));
  SHOW(ncmpi_del_att(file, variable, "schar"));
}

int main(int argc, char** argv) {
  start(&argc, &argv);
  int file, t, x, y, scalar, grid, line, id = -1, n = -1;
  SHOW(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_64BIT_OFFSET | NC_64BIT_DATA, MPI_INFO_NULL, &id));
  SHOW(ncmpi_open(MPI_COMM_WORLD, "does-not-exist.nc", NC_NOWRITE, MPI_INFO_NULL, &id));
  MUST(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
  SHOW(ncmpi_def_dim(file, "t", NC_UNLIMITED, &t));
  SHOW(ncmpi_def_dim(file, "t2", NC_UNLIMITED, &id));
  SHOW(ncmpi_def_dim(file, "x", 4, &x));
  SHOW(ncmpi_def_dim(file, "x", 5, &id));
  SHOW(ncmpi_def_dim(file, "y", 3, &y));
  SHOW(ncmpi_def_dim(file, "neg", -3, &id));
  SHOW(ncmpi_def_dim(file, "a/b", 3, &id));
  SHOW(ncmpi_def_dim(file, "gr\303\266\303\237e", 3, &id));
  SHOW(ncmpi_def_dim(file, " blank", 3, &id));
  SHOW(ncmpi_def_dim(file, NULL, 3, &id));
  const int dims[3] = {t, y, x}, wrong[2] = {x, t}, missing[1] = {99};
  SHOW(ncmpi_def_var(file, "scalar", NC_INT, 0, NULL, &scalar));
  SHOW(ncmpi_def_var(file, "grid", NC_FLOAT, 3, dims, &grid));
  SHOW(ncmpi_def_var(file, "line", NC_CHAR, 1, &x, &line));
  SHOW(ncmpi_def_var(file, "grid", NC_FLOAT, 3, dims, &id));
  SHOW(ncmpi_def_var(file, "no dimension", NC_FLOAT, 1, missing, &id));
  SHOW(ncmpi_def_var(file, "no type", 55, 1, dims, &id));
  SHOW(ncmpi_def_var(file, "negative", NC_INT, -1, dims, &id));
  (void)wrong;
  attributes(file, NC_GLOBAL);
  attributes(file, grid);
  const float fill = -9.f;
  const int wrong_fill = 3;
  SHOW(ncmpi_put_att_int(file, grid, _FillValue, NC_INT, 1, &wrong_fill));
  SHOW(ncmpi_put_att_float(file, grid, _FillValue, NC_FLOAT, 1, &fill));
  float got = 0;
  SHOW(ncmpi_inq_var_fill(file, grid, &n, &got));
  SHOW_NUMBER(got);
  SHOW_NUMBER(n);
  SHOW(ncmpi_copy_att(file, grid, "short", file, line));
  SHOW(ncmpi_copy_att(file, grid, "missing", file, line));
  int old_mode = -1;
  SHOW(ncmpi_set_fill(file, NC_FILL, &old_mode));
  SHOW_NUMBER(old_mode);
  SHOW(ncmpi_set_fill(file, NC_NOFILL, &old_mode));
  SHOW_NUMBER(old_mode);
  SHOW(ncmpi_inq_num_rec_vars(file, &n)); /* PnetCDF always answers 0 for an opened file */
  SHOW_NUMBER(n);
  SHOW(ncmpi_enddef(file));
  SHOW(ncmpi_enddef(file));

  /* Data mode: names and values may shrink, but not grow. */
  SHOW(ncmpi_rename_var(file, grid, "g"));
  SHOW(ncmpi_rename_var(file, grid, "a longer name"));
  SHOW(ncmpi_rename_dim(file, y, "why"));
  SHOW(ncmpi_rename_dim(file, y, "x"));
  SHOW(ncmpi_put_att_text(file, NC_GLOBAL, "renamed", 2, "hi"));
  SHOW(ncmpi_put_att_text(file, NC_GLOBAL, "renamed", 20, "far too long for it."));
  SHOW(ncmpi_put_att_text(file, NC_GLOBAL, "new", 2, "hi"));
  SHOW(ncmpi_del_att(file, NC_GLOBAL, "renamed"));
  SHOW(ncmpi_def_dim(file, "late", 3, &id));
  SHOW(ncmpi_redef(file));
  SHOW(ncmpi_redef(file));
  SHOW(ncmpi_rename_dim(file, y, "why"));
  SHOW(ncmpi_rename_var(file, grid, "grid_"));
  SHOW(ncmpi_close(file));

  MUST(ncmpi_open(MPI_COMM_WORLD, argv[1], NC_NOWRITE, MPI_INFO_NULL, &file));
  int n_dims, n_vars, n_atts, unlimited;
  SHOW(ncmpi_inq(file, &n_dims, &n_vars, &n_atts, &unlimited));
  SHOW_NUMBER(n_dims);
  SHOW_NUMBER(n_vars);
  SHOW_NUMBER(n_atts);
  SHOW_NUMBER(unlimited);
  for (int i = 0; i < n_dims; ++i) {
    char name[NC_MAX_NAME + 1];
    MPI_Offset length;
    MUST(ncmpi_inq_dim(file, i, name, &length));
    if (rank == 0) printf("dimension %d: %s %lld\n", i, name, (long long)length);
  }
  for (int i = 0; i < n_vars; ++i) {
    char name[NC_MAX_NAME + 1];
    nc_type type;
    int rank_of, dimids[3] = {-1, -1, -1}, atts;
    MUST(ncmpi_inq_var(file, i, name, &type, &rank_of, dimids, &atts));
    if (rank == 0) {
      printf("variable %d: %s type %d, %d dimensions (%d %d %d), %d attributes\n", i, name, type,
             rank_of, dimids[0], dimids[1], dimids[2], atts);
    }
    show_attributes(file, i);
  }
  show_attributes(file, NC_GLOBAL);
  SHOW(ncmpi_inq_varid(file, "missing", &id));
  SHOW(ncmpi_inq_dimid(file, "missing", &id));
  SHOW(ncmpi_inq_varname(file, 44, NULL));
  SHOW(ncmpi_inq_varnatts(file, NC_GLOBAL, NULL)); /* netCDF-C's check for existence */
  SHOW(ncmpi_inq_varnatts(file, 44, NULL));
  SHOW(ncmpi_inq_varndims(file, NC_GLOBAL, NULL));
  SHOW(ncmpi_inq_var(file, NC_GLOBAL, NULL, NULL, NULL, NULL, NULL));
  SHOW(ncmpi_inq_dimlen(file, -1, NULL));
  SHOW(ncmpi_put_att_text(file, NC_GLOBAL, "x", 1, "x"));
  SHOW(ncmpi_rename_var(file, 0, "x"));
  SHOW(ncmpi_redef(file));
  SHOW(ncmpi_close(file));
  SHOW(ncmpi_close(file));
  SHOW(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_NOCLOBBER, MPI_INFO_NULL, &id));
  MPI_Finalize();
  return 0;
}
