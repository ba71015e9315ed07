// Properties of an input that the output does not keep, although no request asks for that.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "hdf5/dataset_schema.hpp"
#include "verbs/repack_plan.hpp"

namespace tailrace::verbs {

/// True if the dataset's chunks carry Fletcher's checksum.
bool has_checksum(const StoredDataset& field);

/// Sentences on them, one per kind of property, each with the names of its fields. Pure.
/// @param fields  of the input.  @param written  as the output has them, in the order of the plan.
std::vector<std::string> what_is_not_kept(std::span<const StoredDataset> fields,
                                          std::span<const PlannedField> plan,
                                          std::span<const FieldReport> written);

}  // namespace tailrace::verbs
