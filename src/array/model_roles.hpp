// Roles of the variables of a netCDF-4 model: a bound for all variables applies to values only.

#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "netcdf/netcdf_model.hpp"
#include "policy/roles.hpp"

namespace tailrace {

/// The roles of a model's variables, by its names, shapes and attributes. Every rank has the same
/// model, and so the same roles. The model must live longer, and stay as it is.
class ModelRoles {
 public:
  explicit ModelRoles(const NetcdfModel& model);

  /// True if the variable is a coordinate by netCDF's conventions: one-dimensional and named like
  /// its dimension, or listed in a `coordinates` or `bounds` attribute of its group.
  bool is_coordinate(std::size_t variable) const;
  /// Why a bound for all does not apply: "mask by name". Empty: the variable has values. The first
  /// call costs O(variables), some microseconds each.
  std::string reason_to_stay_exact(std::size_t variable);
  /// Remark on a lossy variable that an option must have named; empty if it has values.
  /// @param by_role  false: only coordinates must be named
  std::string lossy_remark(std::size_t variable, bool by_role);

 private:
  const NetcdfModel& model_;
  std::set<std::pair<std::size_t, std::string>> listed_;  ///< Group and name.
  std::optional<std::vector<RoleVerdict>> verdicts_;      ///< One of each variable.
};

}  // namespace tailrace
