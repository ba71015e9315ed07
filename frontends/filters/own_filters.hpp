// Filter classes of Tailrace's codecs. A program that registers them with its HDF5 reads their
// chunks without a plug-in. To add a filter, add a line here.

#pragma once

#include <array>

#include "hdf5/filter_plugins.hpp"
#include "hdf5_filter/trz_filter.hpp"
#include "hdf5_filter/xor_filter.hpp"

namespace tailrace::hdf5 {

/// Return all filter classes, which exist as long as the process. Not collective. Thread-safe.
inline std::array<const FilterClass*, 2> own_filter_classes() {
  return {&trz_filter_class(), &xor_filter_class()};
}

/// Register the filters with this process's HDF5, which then reads their chunks without plug-ins.
/// Not collective. Call it after setting everything that HDF5 reads from its environment.
inline Status register_own_filters() {
  for (const FilterClass* filter_class : own_filter_classes()) {
    TAILRACE_TRY(register_filter_class(filter_class));
  }
  return Status();
}

}  // namespace tailrace::hdf5
