// What a file says of the filters that its readers must have: an attribute of the root group.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// The root group's attribute: one text.
inline constexpr const char* readers_need_attribute = "tailrace_readers_need";

/// Whether every HDF5 has the filter.
bool comes_with_hdf5(const FilterSpec& filter);
/// What readers know the filter as: our name, else the one in the header, "id=NUMBER" without one.
std::string name_for_readers(const FilterSpec& filter);

/// Collects the filters of the datasets that are made in a file and that not every HDF5 has.
/// Rank 0 only; callers hold an Hdf5Scope.
class ReadersNeed {
 public:
  /// A dataset has these filters. Cost: one look a filter.
  void learn(std::span<const FilterSpec> filters);
  /// Let the root group say it, together with what it says already; nothing where nothing is new.
  /// @param file  HDF5's id of the open file.  @error internal  HDF5 refuses.
  Status say(std::int64_t file);

 private:
  std::vector<std::string> names_;  // In the order in which they came; none is there twice.
  std::size_t n_said_ = 0;
};

}  // namespace tailrace
