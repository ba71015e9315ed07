// What an output lacks of its input, though nobody has asked for that.

#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "hdf5/dataset_schema.hpp"
#include "verbs/repack_plan.hpp"

namespace tailrace::verbs {

/// Whether the dataset's chunks carry Fletcher's checksum.
bool has_checksum(const StoredDataset& field);

/// A sentence for each kind of thing, with the fields that have it. Pure.
/// @param fields  of the input.  @param user_block_bytes  in front of it.
std::vector<std::string> what_is_not_kept(std::span<const StoredDataset> fields,
                                          std::span<const PlannedField> plan,
                                          std::uint64_t user_block_bytes);

}  // namespace tailrace::verbs
