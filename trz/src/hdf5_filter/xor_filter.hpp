// The xor filter as an HDF5 filter class. libh5xor.so passes it to HDF5, and our programs register
// it, so that they read xor without a plug-in.

#pragma once

#include "hdf5_filter/hdf5_abi.hpp"

namespace tailrace::hdf5 {

/// The filter class, valid for the lifetime of the process. Its callbacks are thread-safe, work
/// with any HDF5 from 1.10 on, and throw nothing. Not collective.
const FilterClass& xor_filter_class();

}  // namespace tailrace::hdf5
