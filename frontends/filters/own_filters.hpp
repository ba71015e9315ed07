// The filter classes of our own codecs, for programs that register them with their HDF5 and then
// read without any plug-in. A new filter is one line here.

#pragma once

#include <array>

#include "hdf5/filter_plugins.hpp"
#include "hdf5_filter/trz_filter.hpp"
#include "hdf5_filter/xor_filter.hpp"

namespace tailrace::hdf5 {

/// All of them; they live as long as the process. Not collective. Thread-safe.
inline std::array<const FilterClass*, 2> own_filter_classes() {
  return {&trz_filter_class(), &xor_filter_class()};
}

/// Register them with this process's HDF5, which then reads their chunks without plug-ins. Not
/// collective. Comes after everything that HDF5 is to find in its environment.
inline Status register_own_filters() {
  for (const FilterClass* filter_class : own_filter_classes()) {
    TAILRACE_TRY(register_filter_class(filter_class));
  }
  return Status();
}

}  // namespace tailrace::hdf5
