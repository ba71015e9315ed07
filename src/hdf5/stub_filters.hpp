// What stands in HDF5 under a filter's number while its plug-in's own class must not, or is not
// there.
//
// HDF5 wants a registered class of each filter when it creates, extends or writes a dataset, and
// asks that class, also where chunks arrive encoded and the class is never called. Callers hold an
// Hdf5Scope.

#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "core/codec.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// The filters that one file needs HDF5 to take with final client data. For each a stub stands in
/// HDF5: the real class, where this process knows it, without its set_local, so that whatever else
/// the process reads goes on being decoded; else one that refuses every chunk, and that is taken
/// back at the file's end, so that a later search for the plug-in is not answered by it.
class StubFilters {
 public:
  StubFilters() = default;
  StubFilters(const StubFilters&) = delete;
  StubFilters& operator=(const StubFilters&) = delete;
  ~StubFilters() { release(); }

  /// Let HDF5 take final client data of this filter until release().
  Status add(const FilterSpec& filter);
  /// Whether what HDF5 has under this number takes final client data.
  static bool is_stub(std::uint32_t filter_id);
  /// Whether it decodes, if it is there.
  static bool decodes(std::uint32_t filter_id);
  /// Whether its class has been shown to us, or a plug-in has it.
  static bool known(const FilterSpec& filter);
  /// The class that decodes, and is HDF5's where no file needs a stub. It lives as long as the
  /// process. @error internal  HDF5 refuses.
  static Status set_real(const H5Z_class2_t& filter_class);
  /// What no other file needs. The files that used it must be closed.
  void release();

 private:
  std::vector<std::uint32_t> filter_ids_;
};

/// What `call` returns, which writes the dataset or changes its extents. HDF5 first wants each
/// filter to be loaded, which opening the dataset does not do, and its class's consent, which a
/// plug-in that calls another HDF5 of the process cannot give. Where that fails nothing has been
/// done, and the call is repeated with the plug-ins that HDF5 finds, and without the questions to
/// classes that are known. Fails where a filter's stub refuses chunks. HDF5's error stack tells
/// why.
herr_t call_with_filters(hid_t dataset, const std::function<herr_t()>& call);

/// H5Dset_extent like that. Unless it fills or completes chunks it calls no filter, so that those
/// that are missing get stubs, which go to `missing`: to be released when the dataset is closed.
herr_t extend_with_filters(hid_t dataset, std::span<const hsize_t> extents, StubFilters& missing);

}  // namespace tailrace
