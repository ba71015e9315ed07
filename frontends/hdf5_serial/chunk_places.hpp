// Conversion of places: an HDF5 selection to a slab, its elements in memory, a chunk of the grid.

#pragma once

#include <cstdint>
#include <optional>

#include "core/slab.hpp"
#include "hdf5_serial/serial_hdf5.hpp"
#include "trz/base/box.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace::hdf5_serial {

/// Convert a selection in the file to one slab. Not thread-safe, like run_in_memory().
/// @returns false if it is not one slab (points, unions of boxes), or not within `extents` and the
/// selection's own extents
bool slab_of(const SerialHdf5& hdf5, hid_t space, const Shape& extents, Slab& slab);

/// Index of the first selected element in memory, if the elements are contiguous; else empty.
std::optional<std::uint64_t> run_in_memory(const SerialHdf5& hdf5, hid_t space);

/// Box of the chunk at these grid coordinates: box_of() the full chunk, clipped() its part within
/// the dataset's extents.
Box box_of(const Shape& chunk_shape, const Shape& place);
Box clipped(const Shape& extents, const Shape& chunk_shape, const Shape& place);

/// Allocate a chunk. Unless all of it will be written, it is filled with the fill value, or with
/// zeros if undefined. Not allocated if memory is missing. Thread-safe.
Buffer new_chunk(std::uint64_t chunk_bytes, const Buffer& fill_value, bool all_written);

}  // namespace tailrace::hdf5_serial
