// Datasets that are no fields of numbers (strings, compounds, enums, half precision, ...): which of
// them repack compresses without loss, as the bytes of their elements (StoredDataset::bytes_axis).

#pragma once

#include <string>
#include <vector>

#include "core/options.hpp"
#include "describe/input_file.hpp"
#include "trz/base/status.hpp"

namespace tailrace::verbs {

/// The codec of these datasets: byte shuffle and deflate, which every HDF5 reads.
FieldOptions options_of_bytes(FieldOptions lossless);

/// The chunk shape of a dataset whose own chunks do not stay: whole elements.
Shape chunk_shape_of_bytes(const StoredDataset& field, std::uint64_t chunk_bytes, int n_ranks);

/// "complex", "compound", "string", "f16": a type in one word.
std::string kind_of_bytes(const StoredDataset& field);

/// Find which of the input's fields stand for datasets of another type which deflate makes
/// smaller: that has 64 KiB or more, and of which a sample of four parts shrinks by a 20th.
/// Not collective; every rank finds the same. Cost: up to 1 MiB read and encoded for each.
/// @error io_error, corrupt
Result<std::vector<bool>> find_bytes_that_pay(InputFile& input);

}  // namespace tailrace::verbs
