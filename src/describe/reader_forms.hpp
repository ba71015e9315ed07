// Forms in a file that not every HDF5 reader knows: readers without the HDF5 library, and old
// versions of the library.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace {

/// Objects with one form that is newer than HDF5 1.8.
struct NewerForm {
  std::uint64_t n_objects = 0;
  std::string first;  ///< Path of one such object; empty: none.
};

struct ReaderForms {
  NewerForm indexes;  ///< Datasets whose chunks are found through an index type of HDF5 1.10.
  /// Objects whose header states the number of attributes beyond which they move to a heap. HDF5
  /// 1.8 reads this form; pyfive does not.
  NewerForm attribute_numbers;
  std::vector<std::string> filters;  ///< Names of filters that HDF5 does not include, each once.

  bool for_everyone() const { return indexes.n_objects == 0 && attribute_numbers.n_objects == 0; }
};

/// Examine the forms of an HDF5 file. Called by one rank; takes the HDF5 lock. Cost: opens each
/// object once.
/// @error not_found, corrupt  as walk_hdf5(). Objects that HDF5 cannot open are skipped.
Result<ReaderForms> reader_forms_of(const std::string& path);

}  // namespace tailrace
