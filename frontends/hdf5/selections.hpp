// Selections of a program's dataspaces, as slabs of ours.
//
// HDF5 walks a selection in the order of its elements in the array, whatever it was put together
// from (points: as they were listed); the n-th element in the file belongs to the n-th in memory.
// So a selection becomes slabs that, one behind the other, have its elements in that order; of
// points runs of elements, 12 bytes for each that the one before does not continue. Callers hold an
// Hdf5Scope.

#pragma once

#include <hdf5.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "array/element_runs.hpp"
#include "core/slab.hpp"
#include "trz/base/status.hpp"

namespace tailrace::hdf5_programs {

/// What is selected in the file, in the order of its elements: slabs or runs, not both.
struct FileSelection {
  std::vector<Slab> slabs;
  ElementRuns runs;  ///< By row-major numbers within the dataset's extents; some may come again.

  std::uint64_t n_elements() const;
};

/// @param space  H5S_ALL: all of `shape`.  @param shape  the dataset's extents
/// @returns neither slabs nor runs where nothing is selected.
/// @error invalid_argument  not of the dataset's rank, or no selection.
/// @error bad_coverage  it leaves the dataset.
Result<FileSelection> selection_of(hid_t space, const Shape& shape);

/// Where the elements that are selected in memory begin, in elements, if they lie there as one run
/// in their order; nothing if they must be gathered.
std::optional<std::uint64_t> run_of(hid_t space);

}  // namespace tailrace::hdf5_programs
