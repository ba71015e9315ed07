// Writes dataset values through HDF5 itself, for data outside our chunks: variable-length strings,
// compact datasets, datasets without space yet. Rank 0 only. The bytes stay in memory, invisible to
// readers, until the file's next commit.

#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "core/slab.hpp"
#include "trz/base/dtype.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Write variable-length strings into a dataset of that type. Takes the HDF5 lock.
/// @error not_found, internal  HDF5 refuses.
Status write_dataset_texts(std::int64_t hdf5_id, const std::string& path, const Slab& slab,
                           std::span<const std::string> texts);

/// Write numbers of `dtype`, in native byte order; `characters`: strings of one byte each.
/// Takes the HDF5 lock. @error not_found, internal  HDF5 refuses.
Status write_dataset_values(std::int64_t hdf5_id, const std::string& path, const Slab& slab,
                            DType dtype, bool characters, std::span<const std::byte> values);

}  // namespace tailrace
