// Comparison of two HDF5 files except the values of their fields, distributed over the ranks.

#pragma once

#include <span>
#include <string>

#include "verbs/verify_files.hpp"

namespace tailrace::verbs {

/// True if no option of the request excludes the object.
bool is_compared(const VerifyRequest& request, const std::string& path);

/// Compare everything except the values of fields: rank 0 compares the structure, then each rank
/// its share of the other datasets' values. Collective; the same findings on every rank.
/// @param tasks  fields that both files have; their values are compared elsewhere
/// @error corrupt, unsupported, io_error  rank 0 cannot walk a file; names it.
Result<StructureFindings> compare_structure(const VerifyRequest& request, const VerbRanks& ranks,
                                            std::span<const VerifyTask> tasks);

}  // namespace tailrace::verbs
