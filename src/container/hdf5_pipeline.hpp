// What a dataset's creation list needs: element types, fill values and the filter pipeline.
//
// Helpers of hdf5_file.cpp. A filter that HDF5 cannot load is entered by a stub class of its number
// and name: HDF5 asks for a registered class when a dataset is created, but chunks arrive encoded
// and the class is never called. Callers hold an Hdf5Scope.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "container/hdf5_handle.hpp"
#include "core/codec.hpp"
#include "core/dtype.hpp"
#include "core/status.hpp"

namespace tailrace {

/// HDF5's native type for `dtype`; a constant of the library, not to be closed.
hid_t hdf5_native_type(DType dtype);

/// Set the fill value of `creation_list`. @error invalid_argument  `dtype` cannot hold it exactly.
Status set_fill_value(hid_t creation_list, DType dtype, double fill_value);

/// The stub filter classes that one file has caused to be registered; gives them back at its end,
/// so that a later search for the real plug-in is not answered by a stub.
class StubFilters {
 public:
  StubFilters() = default;
  StubFilters(const StubFilters&) = delete;
  StubFilters& operator=(const StubFilters&) = delete;
  ~StubFilters() { release(); }

  /// Register a stub of this number unless this or another file has done so.
  Status add(const FilterSpec& filter);
  /// Whether `filter_id` is served by a stub of any file.
  static bool is_stub(std::uint32_t filter_id);
  /// Unregister what no other file uses. The files that used it must be closed.
  void release();

 private:
  std::vector<std::uint32_t> filter_ids_;
};

/// Append `filters` to the pipeline of `creation_list`, stubs where HDF5 finds no plug-in.
/// @error internal  HDF5 refuses.
Status append_filters(hid_t creation_list, const std::vector<FilterSpec>& filters,
                      StubFilters& stubs);

/// Check that the dataset's header names the client data with which the chunks are encoded.
/// @error unsupported  a plug-in's set_local decided otherwise than the codec was told.
Status check_stored_filters(hid_t dataset, std::span<const FilterSpec> filters);

}  // namespace tailrace
