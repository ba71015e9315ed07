// Names of dimensions, variables and attributes, by netCDF's rules.

#pragma once

namespace tailrace::pnetcdf {

/// @returns NC_NOERR; NC_EBADNAME: none, an illegal character, a trailing space, no valid UTF-8;
/// NC_EMAXNAME: over NC_MAX_NAME bytes.
int check_name(const char* name);

/// Of a name that is looked for: only that there is one, and its length.
int check_sought_name(const char* name);

}  // namespace tailrace::pnetcdf
