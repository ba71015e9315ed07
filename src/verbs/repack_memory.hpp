// Divides --memory during a repack between the Writer, the reader's cache of boxes that are read
// together, and the decoding of complete stored chunks.

#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "hdf5/dataset_schema.hpp"
#include "trz/base/status.hpp"
#include "verbs/chunk_tiles.hpp"
#include "verbs/repack_plan.hpp"

namespace tailrace::verbs {

struct MemoryQuestion {
  const std::vector<PlannedField>& plan;
  const std::vector<StoredDataset>& stored;  ///< The input's datasets, by
                                             ///< PlannedField::input_index.
  int n_ranks = 1;
  std::uint64_t all_bytes = 0;  ///< Minimum over all ranks: the boxes depend on it and decide which
                                ///< rank owns which chunk.
  bool memory_given = false;    ///< The user has set the memory.
  bool scratch = true;          ///< Scratch files are allowed.
};

struct MemoryDivision {
  std::uint64_t set_aside_bytes = 0;  ///< Memory that the Writer does not get.
  std::uint64_t held_bytes = 0;       ///< Cache for boxes that are read together.
  /// Set if scratch files may serve boxes that are read together: the size of the largest stored
  /// chunk for which memory was reserved beyond held_bytes. 0: only chunks that fit held_bytes use
  /// scratch files.
  std::optional<std::uint64_t> scratch_whole_bytes;
  std::string remark;  ///< Empty: memory stays within the limit.
};

/// Divide the memory. Pure; the same on every rank for the same question.
/// @error out_of_memory  asked, and a stored chunk leaves too little for the output; names the
/// dataset and a sufficient --memory.
Result<MemoryDivision> divide_memory(const MemoryQuestion& question);

/// A reader's share of the memory before it is divided: for chunks that boxes have used in part,
/// and for chunks that are being decoded.
std::uint64_t reading_bytes_of(std::uint64_t memory_bytes);

/// A field's chunks, cut into tiles of at most `bytes_max` bytes that are read together.
ChunkTiles tiles_of(const PlannedField& planned, const StoredDataset& stored, int n_ranks,
                    std::uint64_t bytes_max);

}  // namespace tailrace::verbs
