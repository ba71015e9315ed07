// The trz filter as an HDF5 filter class. libh5trz.so passes it to HDF5, and our programs register
// it, so that they read trz without a plug-in.

#pragma once

#include "hdf5_filter/hdf5_abi.hpp"

namespace tailrace::hdf5 {

/// The filter class, valid for the lifetime of the process. Its callbacks are thread-safe (one
/// workspace per thread), work with any HDF5 from 1.10 on, and throw nothing. Not collective.
const FilterClass& trz_filter_class();

}  // namespace tailrace::hdf5
