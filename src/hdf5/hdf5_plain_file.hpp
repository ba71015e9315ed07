// Files that HDF5 reads with its standard driver, filters and conversions.
//
// Shared by the input readers and the slab reader: open a file so that HDF5 finds every plug-in of
// this build, and explain why a read failed.

#pragma once

#include <string>

#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Add this build's plug-in folders to HDF5's search path, after the user's HDF5_PLUGIN_PATH. Call
/// with HDF5 locked, before HDF5 decodes chunks; only the first call has an effect.
void prepare_plugin_folders();

/// The Status of a failed call that opens a file or an object, with the code that HDF5's errors
/// show; call directly after it. `what` names what was to be opened: "dataset "/a"".
/// @returns not_found; invalid_argument (an object of another kind); io_error, out_of_memory; else
/// corrupt.
Status hdf5_open_failure(const std::string& what,
                         const std::string& consequence = " cannot be opened");

/// Open a file for reading, with these plug-in folders. Call with HDF5 locked.
/// @param degree  STRONG: closing the file closes all of its open objects. DEFAULT: for files that
/// the application may also have open; HDF5 requires all openers to use the same degree.
/// @error corrupt  truncated, damaged or not HDF5, with HDF5's own reason.
/// @error not_found, io_error
Result<Hdf5Id> open_plain_hdf5(const std::string& path,
                               H5F_close_degree_t degree = H5F_CLOSE_STRONG);

/// Check that HDF5 has all filters of a creation list. `what` names the dataset.
/// @error plugin_missing  names the first missing filter and the folders searched.
Status check_filters_available(hid_t creation, const std::string& what);

/// The reason why H5Dread failed on `dataset`; call directly after it. `what` names what was being
/// read.
/// @returns plugin_missing with the folders searched if a filter is not available; else io_error,
/// out_of_memory or corrupt, from HDF5's error stack.
Status plain_read_failure(hid_t dataset, const std::string& what);

// --- Virtual datasets: check that their source files exist.
//
// If the source file of a virtual dataset is missing, HDF5 reads fill values without any error. A
// repacked file would then hold fill values forever; an incomplete input must be refused.

/// Check every source file of a virtual dataset in the places where HDF5 looks for it: as named,
/// relative to the folder of `input_path`, and by its bare name there. Not checked: names with a
/// block number ("%b"), which match any number of files, and all names if HDF5_VDS_PREFIX changes
/// the search. Any other dataset is fine. Not collective. Call with HDF5 locked. Cost: O(mappings).
/// @error not_found  names the first missing file.
Status check_virtual_sources(hid_t dataset, const std::string& input_path);

}  // namespace tailrace
