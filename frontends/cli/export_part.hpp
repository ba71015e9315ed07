// tailrace export --slab into HDF5.

#pragma once

#include "commands.hpp"

namespace tailrace::cli {

/// Write a slab of datasets as a netCDF-4 file of its own, without compression. Collective.
/// @returns the exit code.
int export_part(Session& session, const ExportArguments& arguments);

}  // namespace tailrace::cli
