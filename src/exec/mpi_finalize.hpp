// What a library does for a program that leaves its files open: MPI_Finalize is the last moment at
// which all ranks can still close them together.

#pragma once

#include <mpi.h>
#include <unistd.h>

#include <cstdlib>

namespace tailrace {

/// Have `close` called when MPI_Finalize begins, on every rank, and before what was asked for by
/// others until now. MPI must be initialised. Not collective.
template <void (*close)()>
void ask_mpi_finalize() {
  // MPI_Finalize begins by deleting the attributes of MPI_COMM_SELF, the last one first, when all
  // of MPI still works.
  int key = MPI_KEYVAL_INVALID;
  const auto on_delete = [](MPI_Comm, int, void*, void*) {
    close();
    return MPI_SUCCESS;
  };
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, on_delete, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
}

/// The same, and at the end of the process `say_what_is_lost`, for one that never came to
/// MPI_Finalize, but not in a forked child. The first call asks for it, further ones do nothing.
template <void (*close)(), void (*say_what_is_lost)()>
void close_at_finalize() {
  static const bool asked = [] {
    ask_mpi_finalize<close>();
    static const int pid = getpid();
    return std::atexit([] {
             if (getpid() == pid) say_what_is_lost();
           }) == 0;
  }();
  (void)asked;
}

}  // namespace tailrace
