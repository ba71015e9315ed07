// Conversion of a program's dataspace selections.
//
// HDF5 iterates over a selection in array order, however it was composed; points keep the order in
// which they were listed. The n-th element in the file corresponds to the n-th in memory. So a
// selection is converted to the same order of elements. Regular hyperslabs become one slab. Unions
// of hyperslabs, irregular ones and points become runs of elements: 12 bytes for each row or point
// that does not continue the previous one. Callers hold an Hdf5Scope.

#pragma once

#include <hdf5.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "array/element_runs.hpp"
#include "core/slab.hpp"
#include "trz/base/status.hpp"

namespace tailrace::hdf5_programs {

/// Selection in the file, in element order: either a slab or runs; neither if it is empty.
struct FileSelection {
  std::optional<Slab> slab;
  /// Row-major numbers within the dataset's extents; elements of points may repeat.
  ElementRuns runs;

  std::uint64_t n_elements() const;
};

/// Convert a selection in the file.
/// @error invalid_argument  wrong rank, or not a selection.
/// @error bad_coverage  the selection leaves the dataset.
Result<FileSelection> selection_of(hid_t space, const Shape& shape);

/// Index of the first selected element in memory, if the elements are contiguous and in order;
/// empty if they must be gathered.
std::optional<std::uint64_t> run_of(hid_t space);

}  // namespace tailrace::hdf5_programs
