/* Helpers of this folder's programs. They print an expression and its answer on rank 0, so that
 * answers of PnetCDF and Tailrace can be compared as text. */
#ifndef SHOW_H
#define SHOW_H

#include <mpi.h>
#include <pnetcdf.h>
#include <stdio.h>
#include <stdlib.h>

static int rank, n_ranks;

static void start(int* argc, char*** argv) {
  MPI_Init(argc, argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &n_ranks);
  if (*argc < 2) {
    fprintf(stderr, "usage: %s FILE\n", (*argv)[0]);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
}

/* The lowest code of all ranks. Collective. */
static int worst(int code) {
  int all = code;
  MPI_Allreduce(&code, &all, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  return all;
}

/* Show a code's name; the expression is evaluated on every rank. */
#define SHOW(expression)                                                   \
  do {                                                                     \
    const int code_ = worst(expression);                                   \
    if (rank == 0) printf("%s: %s\n", #expression, ncmpi_strerrno(code_)); \
  } while (0)

/* Aborts unless the call succeeds, because later calls depend on it. */
#define MUST(expression)                                                                      \
  do {                                                                                        \
    const int code_ = (expression);                                                           \
    if (code_ != NC_NOERR) {                                                                  \
      fprintf(stderr, "rank %d, %s:%d: %s: %s (%s)\n", rank, __FILE__, __LINE__, #expression, \
              ncmpi_strerrno(code_), ncmpi_strerror(code_));                                  \
      MPI_Abort(MPI_COMM_WORLD, 1);                                                           \
    }                                                                                         \
  } while (0)

#define SHOW_NUMBER(number)                                 \
  do {                                                      \
    const long long number_ = (long long)(number);          \
    if (rank == 0) printf("%s = %lld\n", #number, number_); \
  } while (0)

/* A sum over all ranks that depends on the order of values. */
#define SHOW_VALUES(name, values, n)                                      \
  do {                                                                    \
    double mine_ = 0, sum_ = 0;                                           \
    for (long i_ = 0; i_ < (long)(n); ++i_) {                             \
      mine_ += (double)(values)[i_] * (double)(1 + i_ % 97);              \
    }                                                                     \
    MPI_Allreduce(&mine_, &sum_, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD); \
    if (rank == 0) printf("%s: %.17g\n", name, sum_);                     \
  } while (0)

#endif
