// Finds properties of an input that the output does not preserve although no request asks for a
// change.

#pragma once

#include <span>
#include <string>
#include <vector>

#include "hdf5/dataset_schema.hpp"
#include "verbs/repack_plan.hpp"

namespace tailrace::verbs {

/// True if the dataset's chunks contain Fletcher's checksum.
bool has_checksum(const StoredDataset& field);

/// Sentences about lost properties, one per kind of property, each with the names of its fields.
/// Pure.
/// @param fields  fields of the input.  @param written  the output's fields, in the order of the
/// plan.
std::vector<std::string> what_is_not_kept(std::span<const StoredDataset> fields,
                                          std::span<const PlannedField> plan,
                                          std::span<const FieldReport> written);

}  // namespace tailrace::verbs
