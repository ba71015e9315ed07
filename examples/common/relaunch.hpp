// relaunch: replaces the process, before MPI starts, by the executable that the command line needs.
//
// libtailrace contains a serial HDF5 and the plain HDF5 output a parallel one, which must not be in
// one process. With --output hdf5, NAME therefore executes NAME-hdf5 from the same folder; with
// --output pnetcdf it executes NAME-pnetcdf, which does not use Tailrace.
//
// --write-limit needs a library that is loaded before all others (libwritelimit.so,
// lab/bench/harness). It slows down every write of the process below the output's folder, from any
// library. The program executes itself again with LD_PRELOAD set.

#pragma once

#include "common/application.hpp"

namespace app {

/// Returns if this is already the right process; otherwise does not return. Throws Unavailable if
/// the other executable, or the library, was not built.
void relaunch_if_needed(char** argv, const CommonOptions& options);

}  // namespace app
