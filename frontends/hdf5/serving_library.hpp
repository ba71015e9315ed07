// What the preloaded library (preload/preloaded_calls.cpp) and the VOL connector (vol/) take from
// the one that serves.

#pragma once

#include <hdf5.h>

namespace tailrace::hdf5_programs {

using Hdf5Call = void (*)();

struct ServingLibrary {
  const Hdf5Call* calls;  ///< In the order of TAILRACE_HDF5_CALLS.
  const void* hdf5;       ///< Its H5get_libversion: tells which HDF5 the library's calls reach.
  /// The session's own id of the file in which an object lies; -1: no session's. Not collective.
  hid_t (*session_file)(hid_t object);
  /// End all sessions, as H5close does. Collective over each one's ranks.
  void (*end_sessions)();
};

}  // namespace tailrace::hdf5_programs

extern "C" {
/// The only name of that library that others see.
const tailrace::hdf5_programs::ServingLibrary* tailrace_hdf5_serving(void);
}
