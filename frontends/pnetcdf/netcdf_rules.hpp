// netCDF's rules for names of dimensions, variables and attributes, and for conversion of values
// between types.

#pragma once

#include <cstddef>

#include "netcdf/netcdf_model.hpp"

namespace tailrace::pnetcdf {

/// Check the name of a new object.
/// @returns NC_NOERR
/// @returns NC_EBADNAME  null or empty, an illegal character, a trailing space, or invalid UTF-8
/// @returns NC_EMAXNAME  over NC_MAX_NAME bytes
int check_name(const char* name);

/// Check a name that is looked up: only its presence and its length.
int check_sought_name(const char* name);

/// Write netCDF's default fill value of a type; `value` has model_type_bytes(type) bytes.
void default_fill_value(ModelType type, std::byte* value);

/// Convert `n_values` dense values. Where a value does not fit, `fill` is stored, one value of
/// `to_type`. With `loose_bytes`, signed and unsigned bytes are copied unchanged, as for the
/// formats CDF-1 and CDF-2. Not collective. Thread-safe. @returns NC_NOERR or NC_ERANGE
int convert_values(const std::byte* from, ModelType from_type, std::byte* to, ModelType to_type,
                   std::size_t n_values, const std::byte* fill, bool loose_bytes);

}  // namespace tailrace::pnetcdf
