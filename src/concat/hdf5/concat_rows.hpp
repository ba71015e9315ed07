// Copies rows of datasets that point to data elsewhere in their file: variable-length strings and
// sequences. Only HDF5 can copy them, so rank 0 reads and writes them through HDF5.

#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "concat/hdf5/concat_output.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Append the rows of the dataset `path` of all files to the open dataset `to`, from `first_row`
/// on. The extent of `to` must be large enough. Rows that a file lacks stay unwritten. Holds at
/// most `memory_bytes` of values at a time. Not collective; call with HDF5 locked. Cost: O(bytes).
/// @error not_found, io_error, corrupt, out_of_memory (one row needs more), unsupported
/// (references)
Status copy_rows_from_files(hid_t to, const std::string& path, std::span<const RowSource> sources,
                            std::uint64_t first_row, std::uint64_t memory_bytes);

/// copy_rows_from_files() for one open dataset. `where`: source of the rows, for messages.
Status copy_rows_from(hid_t from, hid_t to, const std::string& where, std::uint64_t n_rows,
                      std::uint64_t first_row, std::uint64_t memory_bytes);

}  // namespace tailrace
