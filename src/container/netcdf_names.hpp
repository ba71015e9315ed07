// Names that netCDF-4 gives a meaning of its own, and where its objects lie in HDF5.

#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "container/netcdf_model.hpp"
#include "core/status.hpp"

namespace tailrace {

/// Start of the scale name of a dimension that has no variable.
inline constexpr std::string_view dimension_without_variable_text =
    "This is a netCDF dimension but not a netCDF variable";
/// Put before the name of a variable whose name a dimension's scale has already.
inline constexpr std::string_view non_coordinate_prefix = "_nc4_non_coord_";

/// Whether netCDF-4 or HDF5's dimension scales keep an attribute name for themselves.
bool is_reserved_attribute(std::string_view name);

/// The dimension whose coordinate variable this is: of its name, in its group, its first. Such a
/// variable's dataset is the dimension's scale.
std::optional<std::size_t> coordinate_of(const NetcdfModel& model, const ModelVariable& variable);

/// Where netCDF-4 puts a variable's dataset.
std::string netcdf4_dataset_path(const NetcdfModel& model, const ModelVariable& variable);

/// Whether netCDF takes the name: 1 to 256 bytes of UTF-8 without control characters or '/', first
/// a letter, digit, underscore or beyond ASCII, no space at the end.
/// @error invalid_argument  says which rule; the name is left to the caller to put before it.
Status check_netcdf_name(std::string_view name);

/// check_model() for what differs from `old`: an opened file may hold names that netCDF would not
/// take, and can be added to all the same. nullptr: check everything.
Status check_model_change(const NetcdfModel& model, const NetcdfModel* old);

}  // namespace tailrace
