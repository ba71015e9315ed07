// netCDF's rules for names of dimensions, variables and attributes, and for values of one type that
// are wanted in another.

#pragma once

#include <cstddef>

#include "netcdf/netcdf_model.hpp"

namespace tailrace::pnetcdf {

/// @returns NC_NOERR; NC_EBADNAME: none, an illegal character, a trailing space, no valid UTF-8;
/// NC_EMAXNAME: over NC_MAX_NAME bytes.
int check_name(const char* name);

/// Of a name that is looked for: only that there is one, and its length.
int check_sought_name(const char* name);

/// netCDF's default fill value of a type; `value` takes model_type_bytes(type) bytes.
void default_fill_value(ModelType type, std::byte* value);

/// Convert `n_values` dense values. `fill` is one value of `to_type`, put where a value does not
/// fit. With `loose_bytes`, bytes of either sign are taken as they are, as files of the formats
/// CDF-1 and CDF-2 do.
/// Not collective. Thread-safe. @returns NC_NOERR or NC_ERANGE
int convert_values(const std::byte* from, ModelType from_type, std::byte* to, ModelType to_type,
                   std::size_t n_values, const std::byte* fill, bool loose_bytes);

}  // namespace tailrace::pnetcdf
