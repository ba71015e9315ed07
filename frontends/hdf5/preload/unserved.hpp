// Report of a process whose files the preloaded library has not seen.

#pragma once

#include <cstdint>

namespace tailrace::hdf5_programs {

/// Print why no file was opened by MPI-IO through this library or another one of its kind, if
/// TAILRACE_REPORT=1. Otherwise the ranks have agreed on each file, and reported why one was not
/// served. For the end of the process; rank 0 prints. MPI has ended, so the rank is the one in the
/// launcher's environment.
/// @param n_openings  calls that reached this library and create or open a file.
void report_nothing(std::uint64_t n_openings);

}  // namespace tailrace::hdf5_programs
