// The trz filter as an HDF5 filter class: what libh5trz.so gives to HDF5, and what our own programs
// register with theirs, so that they read trz without any plug-in.

#pragma once

#include "hdf5_filter/hdf5_abi.hpp"

namespace tailrace::hdf5 {

/// The class; lives as long as the process. Its callbacks are thread-safe (a workspace for each
/// thread), work with any HDF5 from 1.10 on, and throw nothing. Not collective.
const FilterClass& trz_filter_class();

}  // namespace tailrace::hdf5
