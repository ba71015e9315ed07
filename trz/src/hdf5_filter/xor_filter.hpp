// The xor filter as an HDF5 filter class: what libh5xor.so gives to HDF5, and what our own programs
// register with theirs, so that they read xor without any plug-in.

#pragma once

#include "hdf5_filter/hdf5_abi.hpp"

namespace tailrace::hdf5 {

/// The class; lives as long as the process. Its callbacks are thread-safe, work with any HDF5 from
/// 1.10 on, and throw nothing. Not collective.
const FilterClass& xor_filter_class();

}  // namespace tailrace::hdf5
