// How far a concatenation has come, kept in the unfinished output itself.
//
// A root attribute that is committed together with the datasets it speaks of, so that it is true
// whenever the job dies; the finished file does not have it.

#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "container/hdf5_file.hpp"
#include "core/status.hpp"

namespace tailrace {

struct ConcatProgress {
  std::string request;           ///< What was asked: inputs, their lengths, options.
  std::uint64_t n_datasets = 0;  ///< Of the schema, in its order, that are complete.
};

/// Whether the file is what a concatenation left that was cut short between its first commit and
/// its last. Takes the HDF5 lock.
bool tells_progress(const std::string& path);
/// With the next commit. @error internal
Status write_progress(Hdf5File& file, const ConcatProgress& progress);
/// @returns nothing where the file says nothing. @error corrupt
Result<std::optional<ConcatProgress>> read_progress(const Hdf5File& file);
/// With the next commit; nothing to remove is fine. @error internal
Status remove_progress(const Hdf5File& file);

}  // namespace tailrace
