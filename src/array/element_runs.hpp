// ElementRuns: elements of an array, named by runs of neighbours in row-major order. For what is
// put in very many short pieces that no few boxes hold (a model's columns along a space-filling
// curve): 12 bytes a run, and no look-ups of neighbours one by one. Pure; main thread only.

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
  std::vector<std::uint64_t> firsts;  ///< Of each run; in any order.
  std::vector<std::uint32_t> counts;  ///< Elements of it, none of 0.

  std::size_t size() const { return firsts.size(); }
  bool empty() const { return firsts.empty(); }
  std::uint64_t n_elements() const;
  /// What continues the run before is part of it.
  void add(std::uint64_t first, std::uint64_t n);
};

/// The same runs, ascending, neighbours joined; which part of their values comes when.
struct SortedRuns {
  struct Part {
    std::uint64_t from = 0;  ///< Elements before it where the values lie now.
    std::uint64_t n = 0;
  };
  ElementRuns runs;
  std::vector<Part> parts;
  bool overlap = false;  ///< Some element is named twice; then the rest means nothing.
};
SortedRuns sort_runs(const ElementRuns& runs);

/// Runs as they lie in memory, at any alignment, in whole words: all firsts, then for each run the
/// elements up to its end, modulo 2^32.
class StoredRuns {
 public:
  static constexpr std::uint64_t bytes_of(std::uint64_t n) { return 8 * n + (4 * n + 7) / 8 * 8; }
  static void store(const ElementRuns& runs, std::byte* to);

  StoredRuns(const std::byte* at, std::size_t n) : at_(at), n_(n) {}
  std::size_t size() const { return n_; }
  std::uint64_t first(std::size_t run) const { return load<std::uint64_t>(8 * run); }
  std::uint64_t count(std::size_t run) const { return std::uint32_t(end(run) - from(run)); }
  /// Elements of all runs before it, modulo 2^32.
  std::uint32_t from(std::size_t run) const { return run == 0 ? 0 : end(run - 1); }
  /// The first run that reaches beyond element `begin`, of runs that ascend and do not overlap;
  /// size() where none does. Cost: O(log runs).
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

/// A part of a run within one chunk.
struct ChunkPiece {
  std::uint32_t first = 0;  ///< Where in the whole chunk, row-major.
  std::uint32_t n = 0;
  std::uint32_t from = 0;  ///< Elements of all runs before it.
};

/// Runs by the chunks that they touch. Cost: O(runs log runs), and 12 bytes a piece.
class ChunkPieces {
 public:
  /// The runs' elements, and a chunk's, are fewer than 2^32. At least one dimension.
  ChunkPieces(const ChunkGrid& grid, const StoredRuns& runs);
  /// Ascending.
  std::span<const std::uint64_t> chunks() const { return chunks_; }
  /// None of a chunk that is not touched.
  std::span<const ChunkPiece> of(std::uint64_t chunk_index) const;
  std::uint64_t n_elements(std::uint64_t chunk_index) const;

 private:
  std::vector<std::uint64_t> chunks_;
  std::vector<std::size_t> ends_;  ///< Of each chunk's pieces.
  std::vector<ChunkPiece> pieces_;
};

}  // namespace tailrace
