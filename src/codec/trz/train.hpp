// Training of shared books: count what chunks of a field would code, make one book for all.
//
// A book made from the previous step of an evolving field serves the next ones: chunks then save
// the making and the bytes of codes of their own (Jin et al. 2024, section 4.3). Measured:
// bench/results.

#pragma once

#include <cstddef>
#include <span>

#include "codec/trz/book.hpp"
#include "codec/trz/trz.hpp"

namespace tailrace::trz {

/// Add one chunk's codes to the counts of a book to be. Chunks that would not be coded on a lattice
/// (constant, exact, or packed by the preset fast) add nothing.
/// @param values  n_elements(type.shape) elements in native order; type.book is ignored.
/// Not collective. Thread-safe, a workspace and histograms each. Cost: about that of encode().
/// @error invalid_argument  sizes that do not match, or no absolute bound on f32 or f64.
/// @error out_of_memory
Status count_for_book(const ChunkType& type, const Settings& settings,
                      std::span<const std::byte> values, BookHistograms& histograms,
                      Workspace& workspace);

}  // namespace tailrace::trz
