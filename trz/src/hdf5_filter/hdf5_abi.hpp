// Our declarations of the part of HDF5's binary interface that a filter plug-in needs.
//
// A plug-in must work with every HDF5 that loads it: Debian's, those in the wheels of h5py and
// netCDF4 (two in one process), or one built into an application. So it is compiled without HDF5's
// headers and not linked to HDF5. These declarations hold for all HDF5 from 1.10 on;
// hdf5_abi_test.cpp compares them with the real headers. Names are HDF5's in snake_case.

#pragma once

#include <cstddef>
#include <cstdint>

namespace tailrace::hdf5 {

using hid_t = std::int64_t;     // Since HDF5 1.10; an int in earlier versions.
using hsize_t = std::uint64_t;  // unsigned long long in HDF5, which is 64 bits everywhere.
using herr_t = int;
using htri_t = int;
using filter_t = int;

inline constexpr int kClassVersion = 1;           ///< H5Z_CLASS_T_VERS
inline constexpr unsigned kFlagReverse = 0x0100;  ///< H5Z_FLAG_REVERSE: decode
inline constexpr int kPluginTypeFilter = 0;       ///< H5PL_TYPE_FILTER
inline constexpr hid_t kDefaultStack = 0;         ///< H5E_DEFAULT

enum TypeClass : int { type_integer = 0, type_float = 1 };                     ///< H5T_class_t
enum ByteOrder : int { order_little = 0, order_big = 1, order_none = 4 };      ///< H5T_order_t
enum Sign : int { sign_none = 0, sign_two = 1 };                               ///< H5T_sign_t
enum FillState : int { fill_undefined = 0, fill_default = 1, fill_user = 2 };  ///< H5D_fill_value_t

/// H5Z_class2_t.
struct FilterClass {
  int version;
  filter_t id;
  unsigned encoder_present;
  unsigned decoder_present;
  const char* name;
  htri_t (*can_apply)(hid_t creation_list, hid_t type, hid_t space);
  herr_t (*set_local)(hid_t creation_list, hid_t type, hid_t space);
  std::size_t (*filter)(unsigned flags, std::size_t n_words, const unsigned* words,
                        std::size_t n_bytes, std::size_t* capacity, void** block);
};

}  // namespace tailrace::hdf5
