// Dealing the chunks of many fields to the ranks of a repack, without communication.
//
// Every field is spread evenly: rank r takes the r-th run of n_chunks / n_ranks chunks, so that
// each rank meets every kind of data and no rank gets all of the slow field. What is left over
// (fewer chunks than ranks, per field) is dealt contiguously by bytes over all fields' left-overs.
// Both are closed formulas: O(fields + own chunks) work a rank.

#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace tailrace::verbs {

struct DealtField {
  std::uint64_t n_chunks = 0;
  std::uint64_t raw_bytes = 0;
};

/// Consecutive chunks of one field in the order in which they are dealt: positions [first, end).
struct ChunkRun {
  std::size_t field_index = 0;
  std::uint64_t first = 0;
  std::uint64_t end = 0;
};

/// The runs of this rank, in field order. Over all ranks, every chunk is dealt exactly once.
std::vector<ChunkRun> deal_chunks(std::span<const DealtField> fields, int rank, int n_ranks);

}  // namespace tailrace::verbs
