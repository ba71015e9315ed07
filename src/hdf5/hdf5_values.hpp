// Values of a dataset written through HDF5 itself, for what has no chunks of ours: texts of
// variable length, compact datasets, datasets without space yet. Rank 0 only; nothing is visible
// before the file's next commit, until which the bytes are held in memory.

#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/slab.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Write texts of variable length into a dataset of such. Takes the HDF5 lock.
/// @error not_found, internal  HDF5 refuses.
Status write_dataset_texts(std::int64_t hdf5_id, const std::string& path, const Slab& slab,
                           std::span<const std::string> texts);

/// Write numbers of `dtype`, in native byte order; `characters`: texts of one byte each.
/// Takes the HDF5 lock. @error not_found, internal  HDF5 refuses.
Status write_dataset_values(std::int64_t hdf5_id, const std::string& path, const Slab& slab,
                            DType dtype, bool characters, std::span<const std::byte> values);

}  // namespace tailrace
