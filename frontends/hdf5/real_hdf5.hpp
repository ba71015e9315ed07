// The functions of the parallel HDF5 behind the ones that a program calls here, and whether that is
// the HDF5 that this library was compiled for.
//
// All other functions are called by their names. These, too, reach HDF5 by their names within an
// Hdf5Scope, which tells that a call is ours (adr/one-hdf5-preloaded.md); by this table they do
// without one, so that HDF5 prints its errors as the program has asked it to.
//
// hdf5_served_calls.inc is written by CMake: TAILRACE_HDF5_CALLS(CALL) with CALL(name, version) for
// each call that program_calls.cpp defines and the library has, and TAILRACE_WITH_<name> for each.

#pragma once

#include <hdf5.h>
#include <hdf5_served_calls.inc>

#include <string>

// A serial HDF5 of the same name takes the parallel one's place in a serial program, and lacks
// these. Such a program must start and run as if we were not there.
#pragma weak H5Pset_fapl_mpio
#pragma weak H5Pget_fapl_mpio
#pragma weak H5Pget_dxpl_mpio
#if H5_VERSION_GE(2, 0, 0)
#pragma weak H5FD_MPIO_id_g
#else
#pragma weak H5FD_mpio_init
#endif

namespace tailrace::hdf5_programs {

// NOLINTNEXTLINE(bugprone-macro-parentheses): a name that is declared.
#define TAILRACE_HDF5_POINTER(name, version) decltype(&::name) name = nullptr;
struct RealHdf5 {
  TAILRACE_HDF5_CALLS(TAILRACE_HDF5_POINTER)
};
#undef TAILRACE_HDF5_POINTER

/// Found once, in the library that our calls of HDF5 reach. What that lacks fails. Thread-safe.
const RealHdf5& real_hdf5();

/// Whether the process's HDF5 is parallel and of the version that this library was compiled for:
/// else all calls are passed on as they are. Makes no call that HDF5s of other versions differ in.
/// Alike on all ranks, as far as these run the same program. Thread-safe.
bool hdf5_is_served();

/// Why it is not served: names both versions.
std::string why_not_served();

}  // namespace tailrace::hdf5_programs
