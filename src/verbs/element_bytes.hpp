// Selects datasets that are not fields of numbers (strings, compounds, enums, half precision, ...)
// for lossless compression by repack. They are compressed as the bytes of their elements
// (StoredDataset::bytes_axis).

#pragma once

#include <string>
#include <vector>

#include "core/options.hpp"
#include "describe/input_file.hpp"
#include "trz/base/status.hpp"
#include "verbs/input_fields.hpp"

namespace tailrace::verbs {

/// Options for these datasets: byte shuffle and deflate, which every HDF5 installation reads.
FieldOptions options_of_bytes(FieldOptions lossless);

/// Combined --field options for one of these datasets.
struct BytesRequest {
  std::vector<KeyValue> options;  ///< Options codec= and chunk=, which apply.
  bool compressed = false;        ///< An entry names the dataset and sets one of these options.
  bool as_stored = false;         ///< codec=none or layout=contiguous is set.
  bool bound = false;             ///< A wildcard sets a bound, which does not apply.
  std::string unapplied;          ///< First other key that a wildcard sets.
};

/// Combine the entries for a dataset. An entry whose wildcard also matches fields of numbers
/// applies as far as possible. Pure.
/// @param numbers  the fields of numbers
/// @error invalid_argument  an entry names this dataset and sets an option that does not apply.
Result<BytesRequest> request_of_bytes(const StoredDataset& field,
                                      std::span<const FieldPattern> patterns,
                                      std::span<const StoredDataset> numbers);

/// Check that no --field entry names a dataset that is copied as stored, unless the entry requests
/// that. Pure.
/// @param why  reason why such datasets are copied; empty: their type or storage
/// @error invalid_argument  names the dataset and the entry
Status check_not_requested(const OtherDataset& other, std::span<const FieldPattern> patterns,
                           std::span<const StoredDataset> numbers, const std::string& why);

/// Select the large datasets that --publish cloud and --publish cmip7 leave unchanged.
std::vector<OtherDataset> large_ones(std::span<const OtherDataset> others);

/// Chunk shape for a dataset whose stored chunks are replaced: complete elements.
Shape chunk_shape_of_bytes(const StoredDataset& field, std::uint64_t chunk_bytes, int n_ranks);

/// Type in one word: "complex", "compound", "string", "f16".
std::string kind_of_bytes(const StoredDataset& field);

/// Find the input's fields of bytes that deflate makes sufficiently smaller. They have 64 KiB or
/// more, and a sample of four parts shrinks by at least a 20th. Not collective; every rank finds
/// the same. Cost: reads and encodes up to 1 MiB for each.
/// @error io_error, corrupt
Result<std::vector<bool>> find_bytes_that_pay(InputFile& input);

}  // namespace tailrace::verbs
