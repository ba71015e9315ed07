// Copies rows of datasets that point to data elsewhere in their file: variable-length strings and
// sequences. Only HDF5 can move them, so that rank 0 reads and writes them through it.

#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "concat/hdf5/concat_output.hpp"
#include "hdf5/hdf5_handle.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Append the rows of the dataset `path` of all files to the open dataset `to`, whose extent is
/// large enough, from `first_row` on. Rows that a file lacks stay unwritten. Holds at most
/// `memory_bytes` of values at a time. Not collective; call with HDF5 locked. Cost: O(bytes).
/// @error not_found, io_error, corrupt, out_of_memory (one row needs more), unsupported
/// (references)
Status copy_rows_from_files(hid_t to, const std::string& path, std::span<const RowSource> sources,
                            std::uint64_t first_row, std::uint64_t memory_bytes);

/// The same from one open dataset. `where`: for messages, whose rows they are.
Status copy_rows_from(hid_t from, hid_t to, const std::string& where, std::uint64_t n_rows,
                      std::uint64_t first_row, std::uint64_t memory_bytes);

}  // namespace tailrace
