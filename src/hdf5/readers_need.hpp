// A root attribute that lists the filters that readers of the file need.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/codec.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Name of the root group's attribute, one string.
inline constexpr const char* kReadersNeedAttribute = "tailrace_readers_need";

/// True if every HDF5 contains the filter.
bool comes_with_hdf5(const FilterSpec& filter);
/// The filter's name for readers: our name, else the header's name, else "id=NUMBER".
std::string name_for_readers(const FilterSpec& filter);

/// Collects those filters of a file's new datasets that some HDF5 builds lack. Rank 0 only; callers
/// hold an Hdf5Scope.
class ReadersNeed {
 public:
  /// Add the filters of a dataset. Cost: one look-up per filter.
  void learn(std::span<const FilterSpec> filters);
  /// Write the attribute, merged with its existing content; does nothing if no filter is new.
  /// @param file  HDF5's id of the open file.  @error internal  HDF5 refuses.
  Status write(std::int64_t file);

 private:
  std::vector<std::string> names_;  // Unique, in order of arrival.
  std::size_t n_written_ = 0;
};

}  // namespace tailrace
