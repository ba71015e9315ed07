// The filter classes of our own codecs, for programs that register them with their HDF5 and then
// read without any plug-in. A new filter is one line here.

#pragma once

#include <array>

#include "hdf5_filter/trz_filter.hpp"
#include "hdf5_filter/xor_filter.hpp"

namespace tailrace::hdf5 {

/// All of them; they live as long as the process. Not collective. Thread-safe.
inline std::array<const FilterClass*, 2> own_filter_classes() {
  return {&trz_filter_class(), &xor_filter_class()};
}

}  // namespace tailrace::hdf5
