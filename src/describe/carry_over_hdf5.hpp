// Carries what is no field from an input HDF5 file into the output: see InputFile.

#pragma once

#include <string>
#include <vector>

#include "core/status.hpp"
#include "describe/hdf5_catalog.hpp"
#include "hdf5/hdf5_file.hpp"

namespace tailrace {

/// Before the fields exist: groups, other datasets, named types, links. Call with HDF5 locked.
/// @returns lines about what could not be carried over.  @error io_error, no_space, corrupt
Result<std::vector<std::string>> carry_over_hdf5_objects(hid_t input, const Hdf5Catalog& catalog,
                                                         Hdf5File& output);

/// After the fields exist: attributes, dimension scales, further hard links, the order of links.
/// Call with HDF5 locked.
Result<std::vector<std::string>> carry_over_hdf5_attributes(hid_t input, const Hdf5Catalog& catalog,
                                                            Hdf5File& output);

}  // namespace tailrace
