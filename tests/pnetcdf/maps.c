/* Maps of one variable over time as CMIP describes them: time, which grows, with its bounds, and
 * all ranks' rows of latitude. Arguments: the file, the number of steps. */

#include <string.h>

#include "show.h"

enum { LAT = 90, LON = 144 };

static void text(int file, int variable, const char* name, const char* value) {
  MUST(ncmpi_put_att_text(file, variable, name, (MPI_Offset)strlen(value), value));
}

static void axis(int file, int variable, int n) {
  double* at = malloc((size_t)n * sizeof(double));
  MPI_Offset first = 0, count = n;
  for (int i = 0; i < n; ++i) at[i] = i;
  MUST(ncmpi_put_vara_double_all(file, variable, &first, &count, at));
  free(at);
}

int main(int argc, char** argv) {
  start(&argc, &argv);
  const int n_steps = argc > 2 ? atoi(argv[2]) : 3;
  int file, dims[3], bounds_dims[2], bnds, time_id, bounds_id, lat_id, lon_id, tas;
  MUST(ncmpi_create(MPI_COMM_WORLD, argv[1], NC_CLOBBER | NC_64BIT_DATA, MPI_INFO_NULL, &file));
  text(file, NC_GLOBAL, "Conventions", "CF-1.11");
  text(file, NC_GLOBAL, "variable_id", "tas");
  MUST(ncmpi_def_dim(file, "time", NC_UNLIMITED, &dims[0]));
  MUST(ncmpi_def_dim(file, "lat", LAT, &dims[1]));
  MUST(ncmpi_def_dim(file, "lon", LON, &dims[2]));
  MUST(ncmpi_def_dim(file, "bnds", 2, &bnds));
  bounds_dims[0] = dims[0];
  bounds_dims[1] = bnds;
  MUST(ncmpi_def_var(file, "time", NC_DOUBLE, 1, dims, &time_id));
  MUST(ncmpi_def_var(file, "time_bnds", NC_DOUBLE, 2, bounds_dims, &bounds_id));
  MUST(ncmpi_def_var(file, "lat", NC_DOUBLE, 1, &dims[1], &lat_id));
  MUST(ncmpi_def_var(file, "lon", NC_DOUBLE, 1, &dims[2], &lon_id));
  MUST(ncmpi_def_var(file, "tas", NC_FLOAT, 3, dims, &tas));
  text(file, time_id, "units", "days since 1850-01-01");
  text(file, time_id, "bounds", "time_bnds");
  text(file, tas, "units", "K");
  MUST(ncmpi_enddef(file));
  axis(file, lat_id, LAT);
  axis(file, lon_id, LON);

  const MPI_Offset first_row = (MPI_Offset)LAT * rank / n_ranks;
  const MPI_Offset n_rows = (MPI_Offset)LAT * (rank + 1) / n_ranks - first_row;
  float* map = malloc((size_t)(n_rows * LON) * sizeof(float));
  for (int step = 0; step < n_steps; ++step) {
    const MPI_Offset at = step, one = rank == 0 ? 1 : 0;
    const MPI_Offset bounds_at[2] = {step, 0}, both[2] = {one, 2};
    const double day = step + 0.5, ends[2] = {step, step + 1};
    MUST(ncmpi_put_vara_double_all(file, time_id, &at, &one, &day));
    MUST(ncmpi_put_vara_double_all(file, bounds_id, bounds_at, both, ends));
    for (MPI_Offset i = 0; i < n_rows * LON; ++i) {
      map[i] = (float)(280 + step + 0.01 * (double)((first_row * LON + i) * 7919 % 1000));
    }
    const MPI_Offset map_at[3] = {step, first_row, 0}, rows[3] = {1, n_rows, LON};
    MUST(ncmpi_put_vara_float_all(file, tas, map_at, rows, map));
  }
  free(map);
  MUST(ncmpi_close(file));
  MPI_Finalize();
  return 0;
}
