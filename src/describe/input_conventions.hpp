// What attributes and names say about a field by convention, alike for HDF5, netCDF-4 and classic.
//
// Fill values must survive a lossy codec exactly and stay out of the value range; coordinates
// (axes, latitudes, cell bounds) must stay exact because readers compare and search them. Source:
// the CF conventions, sections 2.5.1 (missing data), 5 (coordinates), 7.1 (bounds).

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/dtype.hpp"
#include "describe/input_file.hpp"

namespace tailrace {

/// A fill value as an attribute gives it, turned to the field's own precision and range.
/// No value if the dtype cannot hold it, or a double cannot (64-bit integers beyond 2^53):
/// then no element of the field can equal it as FieldOptions spells it. Thread-safe.
std::optional<double> fill_for_dtype(double value, DType dtype);
std::optional<double> fill_for_dtype(std::int64_t value, DType dtype);
std::optional<double> fill_for_dtype(std::uint64_t value, DType dtype);

/// A `coordinates` or `bounds` attribute: blank-separated names, seen from a group.
struct NamedCoordinates {
  std::string group_path;  ///< "/" or "/a/b", where the naming variable lives.
  std::string names;
};

/// Set `coordinate` on every field that one of the attributes names (looked up in the group, then
/// in the groups above it) and on every field whose name ends in "_bnds" or "_bounds".
void mark_coordinates(const std::vector<NamedCoordinates>& named, std::vector<InputField>& fields);

}  // namespace tailrace
