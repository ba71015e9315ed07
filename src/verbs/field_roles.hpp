// Reads the facts that decide roles (policy/roles.hpp) from an input, and derives remarks for a
// plan.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/options.hpp"
#include "policy/roles.hpp"
#include "read/read.hpp"
#include "trz/base/status.hpp"
#include "verbs/repack_plan.hpp"

namespace tailrace::verbs {

/// Determine the role of each of the input's fields, in their order. Every rank finds the same. Not
/// collective. Cost: opens each group and field. @error corrupt  an attribute that HDF5 cannot
/// read.
Result<std::vector<RoleVerdict>> find_roles(InputFile& input);

/// Sentences about lossy fields that are not values, and about the limits and extremes that lossy
/// fields state, each with the names of its fields. Pure.
std::vector<std::string> role_remarks(std::span<const PlannedField> plan, const FileOptions& file);

}  // namespace tailrace::verbs
