// Where things lie: a selection of HDF5 as a slab, its elements in memory, a chunk of the grid.

#pragma once

#include <cstdint>
#include <optional>

#include "core/slab.hpp"
#include "hdf5_serial/serial_hdf5.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace::hdf5_serial {

/// A selection in the file as one slab. Not thread-safe, as the next one.
/// @returns false  where it is not one (points, unions of boxes), or does not lie within `extents`
/// and its own space.
bool slab_of(const SerialHdf5& hdf5, hid_t space, const Shape& extents, Slab& slab);

/// Where the elements that are selected in memory begin, in elements, if they lie as one run.
std::optional<std::uint64_t> run_in_memory(const SerialHdf5& hdf5, hid_t space);

/// The chunk at these coordinates of the grid, not cut at the dataset's end, and cut.
Box box_of(const Shape& chunk_shape, const Shape& place);
Box clipped(const Shape& extents, const Shape& chunk_shape, const Shape& place);

/// Memory for a chunk, unless all of it is going to be written full of the fill value, of zeros
/// where there is none. Not allocated: no memory is left. Thread-safe.
Buffer new_chunk(std::uint64_t chunk_bytes, const Buffer& fill_value, bool all_written);

}  // namespace tailrace::hdf5_serial
