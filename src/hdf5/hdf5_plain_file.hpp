// Files that HDF5 reads by itself, with its own driver, filters and conversions.
//
// What the input readers and the reader of slabs share: opening a file so that every plug-in of
// this build is found, and saying why a read has failed.

#pragma once

#include <string>

#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Open a file for reading. Call with HDF5 locked.
/// @param degree  STRONG: closing it closes all that belongs to it. DEFAULT: the application may
/// have the file open, too, which HDF5 permits only to those who agree on the degree.
/// @error corrupt  truncated, damaged or not HDF5, with HDF5's own reason.
Result<Hdf5Id> open_plain_hdf5(const std::string& path,
                               H5F_close_degree_t degree = H5F_CLOSE_STRONG);

/// Check that HDF5 has all filters of a creation list. `what` names the dataset.
/// @error plugin_missing  names the first filter that it lacks, and the folders searched.
Status check_filters_available(hid_t creation, const std::string& what);

/// Why H5Dread failed on `dataset`; called directly after it. `what` says what was being read.
/// @returns plugin_missing with the folders searched where a filter is not available; else
/// io_error, out_of_memory or corrupt, whichever HDF5's error stack tells of.
Status plain_read_failure(hid_t dataset, const std::string& what);

// --- Finds out whether the files behind a virtual dataset are there.
//
// HDF5 reads fill values, without any error, where the source file of a virtual dataset is missing.
// A repacked file would then hold fill values for ever; an input that is not whole must be refused.

/// Check every source file of a virtual dataset in the places where HDF5 looks for it: as named,
/// beside `input_path`, and by its bare name there. Names with a block number in them ("%b") stand
/// for as many files as there are, and with HDF5_VDS_PREFIX set HDF5 looks elsewhere: not checked.
/// Any other dataset is fine. Not collective. Call with HDF5 locked. Cost: O(mappings).
/// @error not_found  names the first file that is missing.
Status check_virtual_sources(hid_t dataset, const std::string& input_path);

}  // namespace tailrace
