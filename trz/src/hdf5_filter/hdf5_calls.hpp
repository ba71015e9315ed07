// Hdf5Calls: functions of the HDF5 library that is calling the filter.
//
// A process may contain several HDF5 libraries (the wheels of h5py and netCDF4 include one each),
// none of them visible to dlsym(RTLD_DEFAULT). Ids of one are invalid in another. So each callback
// determines its caller: the library that contains its return address, and the libraries which that
// one is linked to. A program that links HDF5 statically must export its symbols (-rdynamic).

#pragma once

#include <cstddef>

#include "hdf5_filter/hdf5_abi.hpp"

namespace tailrace::hdf5 {

/// HDF5's functions; null if the library lacks one. complete() is true if a filter can work with
/// them.
struct Hdf5Calls {
  herr_t (*get_filter_by_id)(hid_t, filter_t, unsigned*, std::size_t*, unsigned*, std::size_t,
                             char*, unsigned*) = nullptr;  // H5Pget_filter_by_id2
  herr_t (*modify_filter)(hid_t, filter_t, unsigned, std::size_t, const unsigned*) = nullptr;
  int (*get_chunk)(hid_t, int, hsize_t*) = nullptr;
  herr_t (*fill_value_defined)(hid_t, int*) = nullptr;
  herr_t (*get_fill_value)(hid_t, hid_t, void*) = nullptr;
  int (*type_class)(hid_t) = nullptr;
  std::size_t (*type_bytes)(hid_t) = nullptr;
  int (*type_order)(hid_t) = nullptr;
  int (*type_sign)(hid_t) = nullptr;
  herr_t (*float_fields)(hid_t, std::size_t*, std::size_t*, std::size_t*, std::size_t*,
                         std::size_t*) = nullptr;
  std::size_t (*float_bias)(hid_t) = nullptr;
  herr_t (*push_error)(hid_t, const char*, const char*, unsigned, hid_t, hid_t, hid_t, const char*,
                       ...) = nullptr;                      // H5Epush2
  void* (*allocate)(std::size_t, unsigned char) = nullptr;  // H5allocate_memory
  herr_t (*release)(void*) = nullptr;                       // H5free_memory
  const hid_t* error_class = nullptr;                       // H5E_ERR_CLS_g
  const hid_t* pipeline_error = nullptr;                    // H5E_PLINE_g
  const hid_t* cannot_apply = nullptr;                      // H5E_CANAPPLY_g
  const hid_t* cannot_set_local = nullptr;                  // H5E_SETLOCAL_g
  const hid_t* cannot_filter = nullptr;                     // H5E_CANTFILTER_g

  bool complete() const;
};

/// Find the functions of the HDF5 that contains `return_address`, or that the containing library or
/// program is linked to. Falls back to an HDF5 that is visible to the whole process. Never fails:
/// check complete(). Thread-safe; caches complete results. The result is valid until the process
/// ends.
const Hdf5Calls& hdf5_calls_of(const void* return_address);

/// Find H5Zregister by the same search; null if no HDF5 is visible. A program with a statically
/// linked HDF5 may have it and lack functions of hdf5_calls_of(). Thread-safe.
using RegisterClass = herr_t (*)(const void* filter_class);
RegisterClass register_class_of(const void* return_address);

}  // namespace tailrace::hdf5
