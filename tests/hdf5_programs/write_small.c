/* Program that creates and closes small files; test_small_files.py counts its MPI calls.
 *
 *   write_small FOLDER N
 *   write_small FOLDER N alone
 *
 * Prints the time of a file in milliseconds, for N empty and N tiny files. With "alone" each rank
 * writes files of its own, without MPI.
 */

#include <hdf5.h>
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>

static int rank;
static int n_ranks;
static int alone;

static hid_t check(hid_t id) {
  if (id >= 0) return id;
  H5Eprint2(H5E_DEFAULT, stderr);
  MPI_Abort(MPI_COMM_WORLD, 1);
  return id;
}

static void write_file(const char* path, hid_t list, int tiny) {
  const hid_t file = check(H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, list));
  if (tiny) {
    const hsize_t extent = 10 * (hsize_t)n_ranks;
    const hsize_t start = 10 * (hsize_t)rank;
    const hsize_t count = 10;
    int values[10];
    for (int i = 0; i < 10; ++i) values[i] = 10 * rank + i;
    const hid_t space = check(H5Screate_simple(1, &extent, NULL));
    const hid_t memory = check(H5Screate_simple(1, &count, NULL));
    const hid_t transfer = check(H5Pcreate(H5P_DATASET_XFER));
    if (!alone) check(H5Pset_dxpl_mpio(transfer, H5FD_MPIO_COLLECTIVE));
    const hid_t dataset =
        check(H5Dcreate2(file, "v", H5T_NATIVE_INT, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT));
    check(H5Sselect_hyperslab(space, H5S_SELECT_SET, &start, NULL, &count, NULL));
    check(H5Dwrite(dataset, H5T_NATIVE_INT, memory, space, transfer, values));
    check(H5Dclose(dataset));
    check(H5Pclose(transfer));
    check(H5Sclose(memory));
    check(H5Sclose(space));
  }
  check(H5Fclose(file));
}

static double cpu_s(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
         1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  const int n = argc > 2 ? atoi(argv[2]) : 1;
  const hid_t list = check(H5Pcreate(H5P_FILE_ACCESS));
  alone = argc > 3;
  if (!alone) check(H5Pset_fapl_mpio(list, MPI_COMM_WORLD, MPI_INFO_NULL));
  char path[4096];
  for (int tiny = 0; tiny < 2; ++tiny) {
    snprintf(path, sizeof path, "%s/%s%s%d.h5", argc > 1 ? argv[1] : ".", tiny ? "tiny" : "empty",
             alone ? "-of-" : "-", alone ? rank : 0);
    for (int i = 0; i < 2; ++i) write_file(path, list, tiny); /* The first file costs more. */
    MPI_Pcontrol(1);
    write_file(path, list, tiny);
    if (rank == 0) printf("%s ", tiny ? "tiny" : "empty");
    fflush(stdout);
    MPI_Pcontrol(2);
    MPI_Barrier(MPI_COMM_WORLD);
    const double start_s = MPI_Wtime();
    const double start_cpu_s = cpu_s();
    for (int i = 0; i < n; ++i) write_file(path, list, tiny);
    double used_s[2] = {MPI_Wtime() - start_s, cpu_s() - start_cpu_s};
    double sum_s[2];
    MPI_Reduce(used_s, sum_s, 2, MPI_DOUBLE, MPI_SUM, 0, MPI_COMM_WORLD);
    if (rank == 0) {
      printf("%.3f ms, CPU of all ranks %.3f ms\n", 1e3 * sum_s[0] / n / n_ranks,
             1e3 * sum_s[1] / n);
    }
  }
  H5Pclose(list);
  MPI_Finalize();
  return 0;
}
