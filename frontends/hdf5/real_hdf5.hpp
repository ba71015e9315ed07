// Pointers to HDF5's own versions of the functions that Tailrace intercepts.
//
// Tailrace calls all other functions by name. Calls of intercepted functions by name reach HDF5,
// too, if made within an Hdf5Scope, which marks them as Tailrace's own
// (docs/adr/0020-one-hdf5-preloaded.md).
// Calls through this table need no scope, so HDF5 prints its errors as the program has configured.
//
// CMake writes hdf5_served_calls.inc. It defines TAILRACE_HDF5_CALLS(CALL), with CALL(name,
// version) for each call that program_calls.cpp defines and the library has. It also defines
// TAILRACE_WITH_<name> for each.

#pragma once

#include <hdf5.h>
#include <hdf5_served_calls.inc>

#include "trz/base/status.hpp"

namespace tailrace::hdf5_programs {

// NOLINTNEXTLINE(bugprone-macro-parentheses): a name that is declared.
#define TAILRACE_HDF5_POINTER(name, version) decltype(&::name) name = nullptr;
struct RealHdf5 {
  TAILRACE_HDF5_CALLS(TAILRACE_HDF5_POINTER)
};
#undef TAILRACE_HDF5_POINTER

/// Look up the functions, once, in the library that Tailrace's HDF5 calls reach. Missing functions
/// fail when called. Thread-safe.
const RealHdf5& real_hdf5();

/// Ok if Tailrace's calls reach one HDF5 only, of the version that this library was compiled for.
/// The preloaded library has asked only that HDF5. Thread-safe.
const Status& hdf5_is_served();

}  // namespace tailrace::hdf5_programs
