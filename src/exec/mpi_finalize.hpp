// Hooks for a program that leaves files open: MPI_Finalize is the last moment at which all ranks
// can still close them together.

#pragma once

#include <mpi.h>
#include <unistd.h>

#include <cstdlib>

namespace tailrace {

/// Call `close` on every rank when MPI_Finalize begins, before the hooks that others have
/// registered so far. MPI must be initialised. Not collective.
template <void (*close)()>
void ask_mpi_finalize() {
  // MPI_Finalize first deletes the attributes of MPI_COMM_SELF, the last one first, while all of
  // MPI still works.
  int key = MPI_KEYVAL_INVALID;
  const auto on_delete = [](MPI_Comm, int, void*, void*) {
    close();
    return MPI_SUCCESS;
  };
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
}

/// Register `close` as ask_mpi_finalize() does. Also call `report_lost_files` at the end of a
/// process that never reached MPI_Finalize, but not in a forked child. Only the first call has an
/// effect.
template <void (*close)(), void (*report_lost_files)()>
void close_at_finalize() {
  static const bool registered = [] {
    ask_mpi_finalize<close>();
    static const int pid = getpid();
    return std::atexit([] {
             if (getpid() == pid) report_lost_files();
           }) == 0;
  }();
  (void)registered;
}

}  // namespace tailrace
