// The edits of a netCDF-4 model that the Python package makes, as functions for EngineFile::edit.
//
// Each checks the positions that it is given; names, types and duplicates are change_model()'s to
// judge, which gives the netCDF-4 library's reasons.

#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "python/engine_file.hpp"

namespace tailrace::python {

using ModelEdit = std::function<Status(NetcdfModel&)>;

/// `path` is absolute; its parent must exist. @error not_found, already_exists
ModelEdit add_group(const std::string& path);
ModelEdit add_dimension(std::size_t group, const std::string& name, std::uint64_t length,
                        bool unlimited);
/// @param fill  the bytes of a _FillValue of the variable's type.
ModelEdit add_variable(std::size_t group, const std::string& name, ModelType type,
                       const std::vector<std::size_t>& dimensions,
                       const std::optional<std::string>& fill);
/// Sets a new attribute or replaces the one of that name, in its place.
ModelEdit set_attribute(Owner owner, std::size_t position, const ModelAttribute& attribute);
/// @error not_found
ModelEdit delete_attribute(Owner owner, std::size_t position, const std::string& name);
ModelEdit rename_dimension(std::size_t dimension, const std::string& name);
ModelEdit rename_variable(std::size_t variable, const std::string& name);

/// The attributes of a group or variable. @error not_found  no such position.
Result<std::vector<ModelAttribute>> attributes_of(const NetcdfModel& model, Owner owner,
                                                  std::size_t position);

}  // namespace tailrace::python
