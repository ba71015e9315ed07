// What the environment says: TAILRACE_OPTIONS, and what it defaults to.

#pragma once

#include <mpi.h>

#include "array/array_file.hpp"

namespace tailrace::pnetcdf {

/// The options of a dataset: TAILRACE_OPTIONS, a text or a file ("@FILE", or just its path), read
/// by rank 0. Collective over `comm`. @error invalid_argument  on every rank.
Status read_settings(MPI_Comm comm, ArrayFileOptions& options);

}  // namespace tailrace::pnetcdf
