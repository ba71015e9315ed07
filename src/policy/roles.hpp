// Roles: distinguish the datasets of a file with measured or computed values from those that
// describe where, when, how and for whom these hold. A bound for all fields applies only to values.
//
// The rules know the layouts of communities (CF, VTKHDF, CGNS, GADGET, NWB, ...), and names with
// the same meaning everywhere. Each rule names its source. A rule sees names, attributes, types and
// shapes, never values. docs/repack.md has the rules for users.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/stated_attribute.hpp"
#include "trz/base/box.hpp"

namespace tailrace {

enum class Role : std::uint8_t {
  value,         ///< Measured or computed; a bound for all fields changes only this role.
  coordinate,    ///< An axis: latitudes, levels, wavelengths, bounds of cells.
  geometry,      ///< Mesh points, positions of particles, boxes, map factors.
  index,         ///< Offsets, row pointers, sorted copies, levels of refinement.
  id,            ///< Names of particles, events, rows.
  time,          ///< Times, dates, spikes.
  weight,        ///< Areas and volumes of cells, statistical weights.
  mask,          ///< Masks and flags.
  connectivity,  ///< Cells as lists of points.
  count          ///< Numbers of things.
};
std::string_view role_name(Role role);

/// A group or dataset, as seen by the rules.
struct StatedObject {
  std::string path;                         ///< "/group/name"
  std::vector<StatedAttribute> attributes;  ///< Attributes that states_role() names.
  Shape shape;
  bool floating = false;    ///< Elements are floating point numbers.
  bool coordinate = false;  ///< A dimension scale, or a coordinate named by another dataset.
};

struct RoleFacts {
  std::vector<StatedObject> groups;
  std::vector<StatedObject> datasets;  ///< Number arrays.
  std::vector<std::string> others;     ///< Paths of datasets of other types.
};

/// True if the rules read attributes of this name. Thread-safe.
bool states_role(std::string_view attribute_name);

/// Paths of objects whose existence identifies a community's files, for callers that cannot list
/// all objects. Objects of these paths belong into RoleFacts.
std::vector<std::string_view> role_markers();

/// True if programs find elements of a dataset by its chunks, so that other chunks make it useless
/// to them: indexes of PyTables' tables.
bool chunks_have_meaning(std::string_view path);

struct RoleVerdict {
  Role role = Role::value;
  std::string because;  ///< "CF units", "VTKHDF"; empty: no rule applies.
  /// Limits that values must not cross, as stated by the dataset or its format; ascending.
  std::vector<double> limits;
  std::string limits_because;  ///< "valid_range", "GADGET: positive"
  /// Attributes that state the least and greatest value: "minimum, maximum"; empty: none.
  std::string extremes_stated;
};

/// Return the verdict on each of facts.datasets, in their order. Pure. Cost: O(groups + datasets),
/// some microseconds each.
std::vector<RoleVerdict> decide_roles(const RoleFacts& facts);
/// Return the verdicts on some of facts.datasets, by their positions.
std::vector<RoleVerdict> decide_roles(const RoleFacts& facts, std::span<const std::size_t> some);

}  // namespace tailrace
