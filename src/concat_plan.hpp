// How each dataset of a concatenation's output is stored: chunk shape, filters, or contiguous.
//
// By default as in the first input, so that chunks can be copied as they are; but chunks that are
// too small to be worth an entry each are made larger. The paper's inputs have chunks of 128
// elements, which cost more in index and headers than in data; its outputs have 1 MB ones
// (Lee et al. 2022, section 5.3 and table 13). docs/concat.md has the rules with their reasons.

#pragma once

#include <cstdint>
#include <string>

#include "concat.hpp"
#include "container/concat_schema.hpp"
#include "core/status.hpp"

namespace tailrace {

/// Chunks of fewer raw bytes than this are made larger unless the request says otherwise.
inline constexpr std::uint64_t small_chunk_bytes = 64U << 10;
/// ... and then about this large.
inline constexpr std::uint64_t default_chunk_bytes = 1U << 20;

/// The form in which `dataset` (of the first input) is to be stored when it has `n_rows` rows.
/// Not collective; the same on every rank. May call HDF5 (codecs by name).
/// @error invalid_argument, unsupported, plugin_missing  names the dataset.
Result<StoredForm> choose_form(const ConcatDataset& dataset, std::uint64_t n_rows,
                               const ConcatRequest& request);

/// Whether a dataset keeps its chunks although others are asked for: its filters were set up for
/// these, and no other codec is asked for.
bool keeps_chunks(const ConcatDataset& dataset, const ConcatRequest& request);

/// Whether the filters mean the same for every chunk shape (deflate does; SZ3 does not).
bool filters_fit_any_chunk(const StoredForm& form);

}  // namespace tailrace
