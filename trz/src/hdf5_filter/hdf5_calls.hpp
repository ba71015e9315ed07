// Hdf5Calls: the functions of the very HDF5 library that is calling the filter.
//
// A process may hold several HDF5 libraries (h5py's and netCDF4's wheels bring one each), loaded so
// that none is visible to dlsym(RTLD_DEFAULT), and ids of one mean nothing to another. So each
// callback asks who called it: the library that its return address lies in, and what that library
// is linked to. HDF5 linked statically into a program must be exported by it (-rdynamic).

#pragma once

#include <cstddef>

#include "hdf5_filter/hdf5_abi.hpp"

namespace tailrace::hdf5 {

/// Null where the library lacks the function; complete() says whether a filter can work with it.
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

/// The calls of the HDF5 that holds `return_address`, or that the library or program which holds it
/// is linked to; failing that, of an HDF5 that the whole process sees. Never fails: look at
/// complete(). Thread-safe; remembers what it found. Valid until the process ends.
const Hdf5Calls& hdf5_calls_of(const void* return_address);

/// H5Zregister of the HDF5 that is found in the same way; null: there is none in sight. A program
/// that HDF5 is linked into may have it and lack functions of hdf5_calls_of(). Thread-safe.
using RegisterClass = herr_t (*)(const void* filter_class);
RegisterClass register_class_of(const void* return_address);

}  // namespace tailrace::hdf5
