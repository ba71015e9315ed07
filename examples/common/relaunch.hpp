// relaunch: before MPI starts, become the executable that the command line needs.
//
// libtailrace holds a serial HDF5 and the plain HDF5 output a parallel one, which must not meet in
// a process: --output hdf5 makes NAME execute NAME-hdf5, which lies beside it; --output pnetcdf
// NAME-pnetcdf, which knows nothing of Tailrace. And --write-limit wants a library loaded before
// all others (libwritelimit.so, bench/preload), that makes every write of the process below the
// output's folder take its time, whoever makes it: so the program executes itself once more with
// LD_PRELOAD set.

#pragma once

#include "common/application.hpp"

namespace app {

/// Returns if this is the right process already, otherwise does not return. Throws Unavailable if
/// the other executable, or the library, was not built.
void relaunch_if_needed(char** argv, const CommonOptions& options);

}  // namespace app
