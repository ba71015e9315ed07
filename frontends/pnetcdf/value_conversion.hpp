// Values between a program's types and a variable's, by PnetCDF's rules.
//
// What does not fit its target is replaced by a fill value, the rest is converted all the same, and
// the answer is NC_ERANGE; text and numbers never convert into each other (checked before).

#pragma once

#include <cstddef>

#include "netcdf/netcdf_model.hpp"

namespace tailrace::pnetcdf {

/// netCDF's default fill value of a type; `value` takes model_type_bytes(type) bytes.
void default_fill_value(ModelType type, std::byte* value);

/// Convert `n_values` dense values. `fill` is one value of `to_type`, put where a value does not
/// fit. With `loose_bytes`, bytes of either sign are taken as they are, as files of the formats
/// CDF-1 and CDF-2 do.
/// Not collective. Thread-safe. @returns NC_NOERR or NC_ERANGE
int convert_values(const std::byte* from, ModelType from_type, std::byte* to, ModelType to_type,
                   std::size_t n_values, const std::byte* fill, bool loose_bytes);

}  // namespace tailrace::pnetcdf
