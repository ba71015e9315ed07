// What in a file's forms not every reader of HDF5 knows: those that are not the HDF5 library, and
// old versions of it.

#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "trz/base/status.hpp"

namespace tailrace {

/// Objects of one form that is newer than HDF5 1.8.
struct NewerForm {
  std::uint64_t n_objects = 0;
  std::string first;  ///< Path of one; empty: none.
};

struct ReaderForms {
  NewerForm indexes;  ///< Datasets whose chunks are found by an index of HDF5 1.10.
  /// Objects whose header says from which number on attributes lie in a heap: HDF5 1.8 has that
  /// form, pyfive does not know it.
  NewerForm attribute_numbers;
  std::vector<std::string> filters;  ///< Those that do not come with HDF5, each once.

  bool for_everyone() const { return indexes.n_objects == 0 && attribute_numbers.n_objects == 0; }
};

/// The forms of an HDF5 file. One rank does it; takes the HDF5 lock. Cost: one look at each object.
/// @error not_found, corrupt  as walk_hdf5(); objects that HDF5 cannot open are left out.
Result<ReaderForms> reader_forms_of(const std::string& path);

}  // namespace tailrace
