// Interface of the serving library to the preloaded library (preload/preloaded_calls.cpp) and the
// VOL connector (vol/).

#pragma once

#include <hdf5.h>

namespace tailrace::hdf5_programs {

using Hdf5Call = void (*)();

struct ServingLibrary {
  const Hdf5Call* calls;  ///< Ordered like TAILRACE_HDF5_CALLS.
  /// The library's H5get_libversion, which identifies the HDF5 that its calls reach.
  const void* hdf5;
  /// Return the session's own id of the file that holds an object, or -1. Not collective.
  hid_t (*session_file)(hid_t object);
  /// Like note_attribute() of serving.hpp.
  void (*note_attribute)(hid_t object, const char* at, const char* name);
  /// End all sessions, like H5close. Collective over each one's ranks.
  void (*end_sessions)();
};

}  // namespace tailrace::hdf5_programs

extern "C" {
/// Entry point, and the only visible symbol of the serving library.
const tailrace::hdf5_programs::ServingLibrary* tailrace_hdf5_serving(void);
}
