/* Three float variables, of which one marks missing values by -1e10 without declaring it, as old
 * programs do.
 *
 *   undeclared_fill FILE
 */

#include "show.h"

enum { rows = 40, columns = 500 };

int main(int argc, char** argv) {
  start(&argc, &argv);
  int file, dimensions[2], fields[3];
  MUST(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER, MPI_INFO_NULL, &file));
  MUST(ncmpi_def_dim(file, "row", (MPI_Offset)rows * n_ranks, &dimensions[0]));
  MUST(ncmpi_def_dim(file, "column", columns, &dimensions[1]));
  const char* const names[] = {"before", "marked", "behind"};
  for (int v = 0; v < 3; ++v) {
    MUST(ncmpi_def_var(file, names[v], NC_FLOAT, 2, dimensions, &fields[v]));
  }
  MUST(ncmpi_enddef(file));
  static float values[rows * columns];
  const MPI_Offset first[] = {(MPI_Offset)rows * rank, 0}, count[] = {rows, columns};
  for (int v = 0; v < 3; ++v) {
    for (int i = 0; i < rows * columns; ++i) {
      values[i] = 20 + 0.001f * (float)(i % 977) + (float)rank;
      if (v == 1 && i % 50 < 3) values[i] = -1e10f;
    }
    MUST(ncmpi_put_vara_float_all(file, fields[v], first, count, values));
  }
  SHOW(ncmpi_sync(file));
  SHOW(ncmpi_close(file));
  MPI_Finalize();
  return 0;
}
