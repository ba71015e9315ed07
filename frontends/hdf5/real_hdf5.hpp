// The functions of the parallel HDF5 behind the ones that a program calls here, and their list.
//
// All other functions are called by their names. These, too, reach HDF5 by their names within an
// Hdf5Scope, which tells that a call is ours (adr/one-hdf5-preloaded.md); by this table they do
// without one, so that HDF5 prints its errors as the program has asked it to.

#pragma once

#include <hdf5.h>

/// name, and the version node under which Debian's library exports it.
#define TAILRACE_HDF5_CALLS(CALL)            \
  CALL(H5Fcreate, "1.8.7")                   \
  CALL(H5Fopen, "1.8.7")                     \
  CALL(H5Fclose, "1.8.7")                    \
  CALL(H5Fflush, "1.8.7")                    \
  CALL(H5Fget_access_plist, "1.8.7")         \
  CALL(H5Fget_name, "1.8.7")                 \
  CALL(H5Fget_obj_count, "1.8.7")            \
  CALL(H5Fget_obj_ids, "1.8.7")              \
  CALL(H5Fget_vfd_handle, "1.8.7")           \
  CALL(H5Fget_filesize, "1.8.7")             \
  CALL(H5Fget_file_image, "1.8.9")           \
  CALL(H5Fset_mpi_atomicity, "1.8.9")        \
  CALL(H5Fget_mpi_atomicity, "1.8.9")        \
  CALL(H5Fstart_swmr_write, "1.10.0")        \
  CALL(H5Idec_ref, "1.8.7")                  \
  CALL(H5close, "1.8.7")                     \
  CALL(H5Dcreate1, "1.8.7")                  \
  CALL(H5Dcreate2, "1.8.7")                  \
  CALL(H5Dcreate_anon, "1.8.7")              \
  CALL(H5Dwrite, "1.8.7")                    \
  CALL(H5Dread, "1.8.7")                     \
  CALL(H5Dset_extent, "1.8.7")               \
  CALL(H5Dextend, "1.8.7")                   \
  CALL(H5Dget_create_plist, "1.8.7")         \
  CALL(H5Dget_storage_size, "1.8.7")         \
  CALL(H5Dget_space_status, "1.8.7")         \
  CALL(H5Dget_num_chunks, "1.10.5")          \
  CALL(H5Dget_chunk_info, "1.10.5")          \
  CALL(H5Dget_chunk_info_by_coord, "1.10.5") \
  CALL(H5Dget_chunk_storage_size, "1.10.2")  \
  CALL(H5Dwrite_chunk, "1.10.3")             \
  CALL(H5Dread_chunk, "1.10.3")              \
  CALL(H5Dflush, "1.10.0")                   \
  CALL(H5Drefresh, "1.10.0")                 \
  CALL(H5Oflush, "1.10.0")                   \
  CALL(H5Orefresh, "1.10.0")                 \
  CALL(H5Ocopy, "1.8.7")                     \
  CALL(H5Odecr_refcount, "1.8.7")            \
  CALL(H5Ldelete, "1.8.7")                   \
  CALL(H5Ldelete_by_idx, "1.8.7")            \
  CALL(H5Gunlink, "1.8.7")

namespace tailrace::hdf5_programs {

// NOLINTNEXTLINE(bugprone-macro-parentheses): a name that is declared.
#define TAILRACE_HDF5_POINTER(name, version) decltype(&::name) name = nullptr;
struct RealHdf5 {
  TAILRACE_HDF5_CALLS(TAILRACE_HDF5_POINTER)
};
#undef TAILRACE_HDF5_POINTER

/// Found once, in the library that has H5Pset_fapl_mpio. Thread-safe.
const RealHdf5& real_hdf5();

}  // namespace tailrace::hdf5_programs
