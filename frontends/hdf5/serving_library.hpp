// What the preloaded library (preload/preloaded_calls.cpp) takes from the one that serves.

#pragma once

namespace tailrace::hdf5_programs {

using Hdf5Call = void (*)();

struct ServingLibrary {
  const Hdf5Call* calls;  ///< In the order of TAILRACE_HDF5_CALLS.
  const void* hdf5;       ///< Its H5get_libversion: tells which HDF5 the library's calls reach.
};

}  // namespace tailrace::hdf5_programs

extern "C" {
/// The only name of that library that others see.
const tailrace::hdf5_programs::ServingLibrary* tailrace_hdf5_serving(void);
}
