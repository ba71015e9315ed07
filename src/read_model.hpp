// A netCDF-4 data model on its way from rank 0 to the others.

#pragma once

#include <span>

#include "container/netcdf_model.hpp"
#include "core/comm.hpp"

namespace tailrace {

/// All of a model as bytes, and back. Pure. Cost: O(objects and attribute bytes).
Bytes pack_model(const NetcdfModel& model);
NetcdfModel unpack_model(std::span<const std::byte> bytes);

}  // namespace tailrace
