// Datasets that are no fields of numbers (strings, compounds, enums, half precision, ...): which of
// them repack compresses without loss, as the bytes of their elements (StoredDataset::bytes_axis).

#pragma once

#include <string>
#include <vector>

#include "core/options.hpp"
#include "describe/input_file.hpp"
#include "trz/base/status.hpp"
#include "verbs/input_fields.hpp"

namespace tailrace::verbs {

/// The codec of these datasets: byte shuffle and deflate, which every HDF5 reads.
FieldOptions options_of_bytes(FieldOptions lossless);

/// What --field entries ask of one of these datasets.
struct BytesRequest {
  std::vector<KeyValue> options;  ///< codec= and chunk=, which apply.
  bool compressed = false;        ///< An entry names the dataset and asks for one of these.
  bool as_stored = false;         ///< codec=none or layout=contiguous.
  bool bound = false;             ///< A wildcard gives a bound, which does not apply.
  std::string unapplied;          ///< The first other key that a wildcard gives.
};

/// An entry that a wildcard spreads over fields of numbers, too, applies as far as it can. Pure.
/// @param numbers  the fields of numbers
/// @error invalid_argument  An entry names this dataset and asks for what does not apply.
Result<BytesRequest> request_of_bytes(const StoredDataset& field,
                                      std::span<const FieldPattern> patterns,
                                      std::span<const StoredDataset> numbers);

/// Check that no --field entry names a dataset that is copied as it is stored, unless the entry
/// asks for that. Pure. @param why  such datasets are copied; empty: for what they are
/// @error invalid_argument  names the dataset and the entry
Status check_not_asked(const OtherDataset& other, std::span<const FieldPattern> patterns,
                       std::span<const StoredDataset> numbers, const std::string& why);

/// Paths and types of the datasets that --cloud and --cmip7 leave as they are though they are
/// large.
std::vector<OtherDataset> large_ones(std::span<const OtherDataset> others);

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
