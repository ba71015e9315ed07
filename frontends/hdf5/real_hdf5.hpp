// The functions of the parallel HDF5 behind the ones that a program calls here.
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

#include "trz/base/status.hpp"

namespace tailrace::hdf5_programs {

// NOLINTNEXTLINE(bugprone-macro-parentheses): a name that is declared.
#define TAILRACE_HDF5_POINTER(name, version) decltype(&::name) name = nullptr;
struct RealHdf5 {
  TAILRACE_HDF5_CALLS(TAILRACE_HDF5_POINTER)
};
#undef TAILRACE_HDF5_POINTER

/// Found once, in the library that our calls of HDF5 reach. What that lacks fails. Thread-safe.
const RealHdf5& real_hdf5();

/// Whether our calls reach one HDF5, of the version that this library was compiled for. The one
/// that is preloaded has asked that HDF5 alone. Thread-safe.
const Status& hdf5_is_served();

}  // namespace tailrace::hdf5_programs
