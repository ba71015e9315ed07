// The program's serial HDF5, reached by function pointers. This library is preloaded and contains
// no HDF5, since a second one in the process would corrupt the first
// (docs/adr/0020-one-hdf5-preloaded.md).
//
// The pointers are looked up in the library whose name was compiled in, however the program has
// loaded it: globally, or privately, as Python's modules do.

#pragma once

#include <hdf5.h>

namespace tailrace::hdf5_serial {

/// Value of H5F_ACC_RDWR. HDF5's macro would call its library.
inline constexpr unsigned access_to_write = 0x1;

/// Find a function of that HDF5; null if HDF5 is not loaded, or lacks it. Thread-safe.
void* find_in_hdf5(const char* name);

// HDF5 functions that this frontend calls. (clang-format does not converge on this list.)
// clang-format off
#define TAILRACE_SERIAL_USED(CALL)                                                            \
  CALL(H5Dread) CALL(H5Dwrite) CALL(H5Dread_chunk) CALL(H5Dwrite_chunk)                       \
  CALL(H5Dget_chunk_storage_size) CALL(H5Dget_type) CALL(H5Dget_space)                        \
  CALL(H5Dget_create_plist) CALL(H5Dgather) CALL(H5Dscatter) CALL(H5Screate_simple)           \
  CALL(H5Sclose) CALL(H5Sselect_hyperslab) CALL(H5Sget_simple_extent_ndims)                   \
  CALL(H5Sget_simple_extent_dims) CALL(H5Sget_select_type) CALL(H5Sget_select_npoints)        \
  CALL(H5Sget_select_bounds) CALL(H5Sis_regular_hyperslab) CALL(H5Sget_regular_hyperslab)     \
  CALL(H5Sget_simple_extent_type) CALL(H5Tequal) CALL(H5Tcopy) CALL(H5Tclose)                 \
  CALL(H5Tget_size) CALL(H5Tget_class) CALL(H5Tis_variable_str) CALL(H5Pcreate)               \
  CALL(H5Pclose) CALL(H5Pequal) CALL(H5Pget_layout) CALL(H5Pget_chunk)                        \
  CALL(H5Pget_chunk_opts) CALL(H5Pget_nfilters) CALL(H5Pget_filter2) CALL(H5Pget_fill_time)   \
  CALL(H5Pget_fill_value) CALL(H5Pfill_value_defined) CALL(H5Oget_info2) CALL(H5Iget_type)    \
  CALL(H5Iget_file_id) CALL(H5Fget_intent) CALL(H5Fclose) CALL(H5Eget_auto2)                  \
  CALL(H5Eset_auto2) CALL(H5get_libversion) CALL(H5Tconvert) CALL(H5Tset_size)                \
  CALL(H5Tset_strpad) CALL(H5Tset_cset) CALL(H5Screate) CALL(H5Pcopy) CALL(H5Pset_chunk)      \
  CALL(H5Pset_filter) CALL(H5Premove_filter) CALL(H5Pset_alloc_time)                          \
  CALL(H5Pget_external_count) CALL(H5Iget_name) CALL(H5Zregister) CALL(H5Aexists)             \
  CALL(H5Aopen) CALL(H5Adelete) CALL(H5Acreate2) CALL(H5Awrite) CALL(H5Aread) CALL(H5Aclose)  \
  CALL(H5Aget_type) CALL(H5Aget_space) CALL(H5Epush2) CALL(H5Eclear2)           \
  CALL(H5Fget_obj_count) CALL(H5Iget_ref) CALL(H5open) CALL(H5Dclose) CALL(H5Oopen)           \
  CALL(H5Oclose) CALL(H5Ovisit2) CALL(H5Aiterate2) CALL(H5Dvlen_reclaim)
// Variables that hold the ids of HDF5's macros.
#define TAILRACE_SERIAL_IDS(VARIABLE)                                                         \
  VARIABLE(H5P_CLS_DATASET_XFER_ID_g) VARIABLE(H5P_CLS_DATASET_CREATE_ID_g)                   \
  VARIABLE(H5T_NATIVE_FLOAT_g) VARIABLE(H5T_NATIVE_DOUBLE_g) VARIABLE(H5T_C_S1_g)             \
  VARIABLE(H5E_ERR_CLS_g) VARIABLE(H5E_ARGS_g) VARIABLE(H5E_BADVALUE_g)
// clang-format on

// NOLINTNEXTLINE(bugprone-macro-parentheses): a name that is declared.
#define TAILRACE_SERIAL_POINTER(name) decltype(&::name) name = nullptr;
#define TAILRACE_SERIAL_ID(name) const hid_t* name = nullptr;
struct SerialHdf5 {
  TAILRACE_SERIAL_USED(TAILRACE_SERIAL_POINTER)
  TAILRACE_SERIAL_IDS(TAILRACE_SERIAL_ID)
};
#undef TAILRACE_SERIAL_ID
#undef TAILRACE_SERIAL_POINTER

/// Look up the table, once. Null if the program's HDF5 has another minor version than the one this
/// library was compiled for, or lacks a function. Thread-safe.
const SerialHdf5* serial_hdf5();

/// Suppresses HDF5's error printing during its lifetime, because failures of internal calls do not
/// concern the program.
class QuietHdf5 {
 public:
  explicit QuietHdf5(const SerialHdf5& hdf5) : hdf5_(hdf5) {
    kept_ = hdf5_.H5Eget_auto2(H5E_DEFAULT, &print_, &data_) >= 0;
    if (kept_) hdf5_.H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
  }
  QuietHdf5(const QuietHdf5&) = delete;
  QuietHdf5& operator=(const QuietHdf5&) = delete;
  ~QuietHdf5() {
    if (kept_) hdf5_.H5Eset_auto2(H5E_DEFAULT, print_, data_);
  }

 private:
  const SerialHdf5& hdf5_;
  H5E_auto2_t print_ = nullptr;
  void* data_ = nullptr;
  bool kept_ = false;
};

}  // namespace tailrace::hdf5_serial
