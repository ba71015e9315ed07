// Fields that the file has already: an over-time field is continued, anything else is refused.
//
// Only rank 0 can look into the file; what it finds travels to all ranks. A dataset is continued if
// the new definition means the same: element type, shape, error bound, codec settings. Its chunk
// shape and absolute bound are kept, since both stand in its header for all entries alike.

#pragma once

#include <string>
#include <vector>

#include "core/comm.hpp"
#include "core/status.hpp"
#include "field/field_state.hpp"
#include "hdf5/hdf5_file.hpp"

namespace tailrace {

/// Refuse new fields whose path cannot be a dataset of this file, and mark those that continue one.
/// Collective. Cost: one agreement; of a file that was opened (`appended`) also one broadcast.
/// @param file  rank 0's; NULL elsewhere.   @param path  where the file's last commit can be read.
/// @error already_exists  the path is taken.   @error invalid_argument  a field lies under another
/// field, or the dataset was written with another type, shape or bound.
Status adopt_existing(Comm& comm, Hdf5File* file, const std::string& path, bool appended,
                      std::vector<FieldState>& fields);

/// Whether the codec makes the very filters of the continued field's dataset. Rank 0 only.
bool has_filters(const FieldState& field, const Codec& codec);

/// Check that the codecs of continued fields are those of their datasets. Rank 0 only.
/// @error invalid_argument  the dataset has other filters.
Status check_continued_codecs(const std::vector<FieldState>& fields);

}  // namespace tailrace
