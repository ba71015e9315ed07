// Finds out whether the files behind a virtual dataset are there.
//
// HDF5 reads fill values, without any error, where the source file of a virtual dataset is missing.
// A repacked file would then hold fill values for ever; an input that is not whole must be refused.

#pragma once

#include <string>

#include "container/hdf5_handle.hpp"
#include "core/status.hpp"

namespace tailrace {

/// Check every source file of a virtual dataset in the places where HDF5 looks for it: as named,
/// beside `input_path`, and by its bare name there. Names with a block number in them ("%b") stand
/// for as many files as there are, and with HDF5_VDS_PREFIX set HDF5 looks elsewhere: not checked.
/// Any other dataset is fine. Not collective. Call with HDF5 locked. Cost: O(mappings).
/// @error not_found  names the first file that is missing.
Status check_virtual_sources(hid_t dataset, const std::string& input_path);

}  // namespace tailrace
