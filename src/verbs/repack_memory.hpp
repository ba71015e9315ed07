// What of --memory is whose when a file is repacked: the Writer's, the reader's for boxes that are
// read together, and that of a stored chunk which is decoded whole.

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
  const std::vector<StoredDataset>& stored;  ///< The input's, by PlannedField::input_index.
  int n_ranks = 1;
  std::uint64_t all_bytes = 0;  ///< The least of any rank's: boxes decide which chunks are whose.
  bool asked = false;           ///< Whether the user has said how much.
  bool scratch = true;          ///< Whether there may be scratch files.
};

struct MemoryDivision {
  std::uint64_t set_aside_bytes = 0;  ///< What the Writer does not have.
  std::uint64_t held_bytes = 0;       ///< For boxes that are read together.
  /// Where a scratch file may take what is read together: the largest stored chunk that goes
  /// through it, beyond what is held; 0: only those that fit there.
  std::optional<std::uint64_t> scratch_whole_bytes;
  std::string remark;  ///< Empty: all is within what was said.
};

/// Pure; the same on every rank for the same question.
/// @error out_of_memory  asked, and too little is left for the output beside a stored chunk; names
/// the dataset and the --memory that does.
Result<MemoryDivision> divide_memory(const MemoryQuestion& question);

/// What a reader has, of so much memory, for chunks that boxes have used in part and for those in
/// work, before it is divided.
std::uint64_t reading_bytes_of(std::uint64_t memory_bytes);

/// A field's chunks, and those of them that are read together, as bytes_max has room for.
ChunkTiles tiles_of(const PlannedField& planned, const StoredDataset& stored, int n_ranks,
                    std::uint64_t bytes_max);

}  // namespace tailrace::verbs
