// Placeholder filter classes, registered with HDF5 while a plug-in's own class is missing or
// unusable.
//
// HDF5 requires a registered class for each filter when it creates, extends or writes a dataset,
// and calls that class's checks. It does so even for chunks that arrive encoded, for which the
// filter is never run. Callers hold an Hdf5Scope.

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/codec.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// The filters for which one file needs HDF5 to accept final client data. Each gets a stub in HDF5.
/// If this process knows the real class, the stub is that class without its set_local, so that
/// other reads of the process still decode. Otherwise the stub refuses every chunk. It is
/// unregistered when the file ends, so that HDF5 can later search for the plug-in.
class StubFilters {
 public:
  StubFilters() = default;
  StubFilters(const StubFilters&) = delete;
  StubFilters& operator=(const StubFilters&) = delete;
  ~StubFilters() { release(); }

  /// Make HDF5 accept final client data of this filter until release().
  Status add(const FilterSpec& filter);
  /// True if the class registered for this id accepts final client data.
  static bool is_stub(std::uint32_t filter_id);
  /// True unless the class registered for this id is a stub that refuses every chunk.
  static bool decodes(std::uint32_t filter_id);
  /// True if the filter's class is registered with us or a plug-in provides it.
  static bool known(const FilterSpec& filter);
  /// Register the class that decodes; HDF5 uses it whenever no file needs a stub. It lives as long
  /// as the process. @error internal  HDF5 refuses.
  static Status set_real(const H5Z_class2_t& filter_class);
  /// Unregister the stubs that no other file needs. The files that used them must be closed.
  void release();

 private:
  std::vector<std::uint32_t> filter_ids_;
};

/// Run `call`, which writes the dataset or changes its extents, and return its result. HDF5 first
/// requires each filter to be loaded, which opening the dataset does not do. It also requires the
/// consent of the filter's class, which a plug-in bound to another HDF5 of the process cannot give.
/// If HDF5 refuses for these reasons, it has done nothing. The call is then repeated with the
/// plug-ins that HDF5 finds, and without the checks of known classes. Fails if a filter's stub
/// refuses chunks. HDF5's error stack contains the reason.
herr_t call_with_filters(hid_t dataset, const std::function<herr_t()>& call);

/// Call H5Dset_extent like call_with_filters(). Unless the call fills or completes chunks, it runs
/// no filter. Missing filters then get stubs in `missing`, to be released when the dataset is
/// closed.
herr_t extend_with_filters(hid_t dataset, std::span<const hsize_t> extents, StubFilters& missing);

}  // namespace tailrace
