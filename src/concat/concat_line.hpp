// ConcatLine: all chunks of a concatenation's output in one sequence, to be cut into rounds and
// distributed to ranks.
//
// The line lists the chunks of all datasets that have rows, in the order of the schema; each chunk
// is as long as its raw bytes. A round is a piece of this line that fits the memory of the ranks;
// in a round every rank owns an equal share of the bytes. Thousands of small datasets and one huge
// dataset are thus the same case. A chunk's owner is known without communication, and no dataset
// needs a barrier (in Lee et al. 2022, section 6.2, each dataset is one collective write). Pure
// arithmetic; O(datasets) memory.

#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "trz/base/box.hpp"

namespace tailrace {

/// Chunks of one dataset that must be written.
struct LineDataset {
  ChunkGrid grid;
  std::uint64_t element_bytes = 1;
  std::uint64_t first_chunk = 0;  ///< Earlier chunks are already in the file (append).

  std::uint64_t chunk_bytes() const { return n_elements(grid.chunk_shape) * element_bytes; }
};

class ConcatLine {
 public:
  explicit ConcatLine(std::vector<LineDataset> datasets);

  const LineDataset& dataset(std::size_t index) const { return datasets_[index]; }
  std::size_t n_datasets() const { return datasets_.size(); }
  /// Number of places. They are numbered from 0; each is one chunk.
  std::uint64_t n_places() const { return first_place_.back(); }
  /// Raw bytes before a place; for n_places(): of the complete line.
  std::uint64_t bytes_before(std::uint64_t place) const;

  struct Chunk {
    std::size_t dataset = 0;
    std::uint64_t chunk_index = 0;  ///< Row-major in the dataset's grid.
  };
  Chunk chunk_at(std::uint64_t place) const;
  /// The first place of a dataset; that of the next one if the dataset has none.
  std::uint64_t first_place(std::size_t dataset) const { return first_place_[dataset]; }
  /// The place of a chunk. Its index must be >= the dataset's first_chunk.
  std::uint64_t place_of(std::size_t dataset, std::uint64_t chunk_index) const {
    return first_place_[dataset] + (chunk_index - datasets_[dataset].first_chunk);
  }

  /// True if a dataset begins at a place, or the line ends there.
  bool is_border(std::uint64_t place) const;
  /// The first border after `first`, at most `end`.
  std::uint64_t next_border(std::uint64_t first, std::uint64_t end) const;

  /// The last place such that at most `n_bytes` lie after `first`, but at least one place.
  std::uint64_t end_within(std::uint64_t first, std::uint64_t n_bytes) const;

 private:
  std::size_t dataset_at(std::uint64_t place) const;

  std::vector<LineDataset> datasets_;
  std::vector<std::uint64_t> first_place_;   ///< n_datasets + 1 entries.
  std::vector<std::uint64_t> bytes_before_;  ///< n_datasets + 1 entries.
};

/// A piece of the line, and the part that each rank owns.
struct ConcatRound {
  std::uint64_t first = 0;
  std::uint64_t end = 0;
  std::vector<std::uint64_t> borders;  ///< n_ranks + 1 places: rank r owns [r] to [r + 1].

  /// Cut [first, end) into shares of equal bytes. Cost: O(ranks log datasets).
  static ConcatRound deal(const ConcatLine& line, std::uint64_t first, std::uint64_t end,
                          int n_ranks);
  int owner(std::uint64_t place) const;
};

}  // namespace tailrace
