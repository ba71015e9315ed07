// ElementRuns: elements of an array, listed as runs of neighbours in row-major order. For puts of
// very many short pieces that do not form a few boxes, such as a model's columns along a
// space-filling curve. Cost: 12 bytes a run, without a lookup per piece. Pure; main thread only.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <span>
#include <vector>

#include "trz/base/box.hpp"

namespace tailrace {

struct ElementRuns {
  std::vector<std::uint64_t> firsts;  ///< First element of each run, in any order.
  std::vector<std::uint32_t> counts;  ///< Number of elements of each run; never 0.

  std::size_t size() const { return firsts.size(); }
  bool empty() const { return firsts.empty(); }
  std::uint64_t n_elements() const;
  /// Append a run; a run that continues the previous one is merged with it.
  void add(std::uint64_t first, std::uint64_t n);
};

/// Runs in ascending order, adjacent ones merged, and the order of their values.
struct SortedRuns {
  struct Part {
    std::uint64_t from = 0;  ///< Offset of its values in the unsorted array, in elements.
    std::uint64_t n = 0;
  };
  ElementRuns runs;
  std::vector<Part> parts;
  bool overlap = false;  ///< True if runs share an element; then the other members are invalid.
};
SortedRuns sort_runs(const ElementRuns& runs);

/// Runs in their packed form in memory, at any alignment, padded to 8 bytes. All firsts come first,
/// then for each run the number of elements up to its end, modulo 2^32.
class StoredRuns {
 public:
  static constexpr std::uint64_t bytes_of(std::uint64_t n) { return 8 * n + (4 * n + 7) / 8 * 8; }
  static void store(const ElementRuns& runs, std::byte* to);

  StoredRuns(const std::byte* at, std::size_t n) : at_(at), n_(n) {}
  std::size_t size() const { return n_; }
  std::uint64_t first(std::size_t run) const { return load<std::uint64_t>(8 * run); }
  std::uint64_t count(std::size_t run) const { return std::uint32_t(end(run) - from(run)); }
  /// Number of elements in all earlier runs, modulo 2^32.
  std::uint32_t from(std::size_t run) const { return run == 0 ? 0 : end(run - 1); }
  /// First run that ends after element `begin`; size() if none does. The runs must ascend and not
  /// overlap. Cost: O(log runs).
  std::size_t find(std::uint64_t begin) const;

 private:
  std::uint32_t end(std::size_t run) const { return load<std::uint32_t>(8 * n_ + 4 * run); }
  template <class Number>
  Number load(std::size_t at) const {
    Number number;
    std::memcpy(&number, at_ + at, sizeof number);
    return number;
  }
  const std::byte* at_;
  std::size_t n_;
};

/// Part of a run within one chunk.
struct ChunkPiece {
  std::uint32_t first = 0;  ///< Position in the full chunk, row-major.
  std::uint32_t n = 0;
  std::uint32_t from = 0;  ///< Number of elements in all earlier runs.
};

/// Runs cut at chunk borders and grouped by chunk. Cost: O(runs log runs), and 12 bytes a piece.
class ChunkPieces {
 public:
  /// @param runs  of fewer than 2^32 elements in total. @param grid  of at least one dimension,
  /// with chunks of fewer than 2^32 elements.
  ChunkPieces(const ChunkGrid& grid, const StoredRuns& runs);
  /// Touched chunks, ascending.
  std::span<const std::uint64_t> chunks() const { return chunks_; }
  /// Pieces of a chunk; empty if the chunk is not touched.
  std::span<const ChunkPiece> of(std::uint64_t chunk_index) const;
  std::uint64_t n_elements(std::uint64_t chunk_index) const;

 private:
  std::vector<std::uint64_t> chunks_;
  std::vector<std::size_t> ends_;  ///< End of each chunk's pieces in pieces_.
  std::vector<ChunkPiece> pieces_;
};

}  // namespace tailrace
