// ReadIndex: addresses of the chunks of one dataset, for a reader.
//
// An index has three states. Initially, chunks are looked up one by one as slabs need them: a small
// slab of a dataset with a million chunks costs microseconds. This rank reads the complete index
// once the look-ups have cost as much as that. It also does so if a look-up finds nothing, which
// only the complete index can explain. Alternatively, the ranks open it together: rank 0 reads it,
// and each node stores one copy in memory that its ranks share. Of a small index each rank has a
// copy.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "chunk/chunk_file.hpp"
#include "core/comm.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// Index of one dataset's chunks.
class ReadIndex {
 public:
  /// Find chunks; those that were never written have 0 encoded bytes. Not collective. Reads `file`
  /// unless the index is complete(). @error corrupt, io_error
  Status find(ChunkFile& file, const StoredDataset& dataset, std::uint64_t n_chunks,
              std::span<const std::uint64_t> chunk_indexes, std::vector<StoredChunk>& found);

  /// Have rank 0 read the index and every node store it. Collective. `file`: only used on rank 0.
  /// Cost: 0.2 us a chunk at rank 0, and one broadcast, in pieces if it is large. It has 12 bytes a
  /// chunk, or 32 if a filter was skipped or most chunks are missing. Beyond 64 KiB also two
  /// reductions, a window and a barrier.
  Status open(Comm& comm, ChunkFile* file, const StoredDataset& dataset, std::uint64_t n_chunks);
  bool opened() const { return opened_; }
  /// True if find() needs no file.
  bool complete() const { return opened_ || walked_; }
  /// Make the destructor local.
  void abandon();

 private:
  StoredChunk at(std::uint64_t chunk_index) const;
  StoredChunk shared_at(std::uint64_t chunk_index) const;
  void note_opened();
  Status walk(ChunkFile& file, const StoredDataset& dataset);
  const std::byte* entry(std::uint64_t position) const;

  std::unordered_map<std::uint64_t, StoredChunk> looked_up_;
  std::uint64_t n_lookups_ = 0;
  bool walked_ = false;
  ChunkTable table_;  ///< Index that this rank has read on its own.
  ChunkTable::Part part_;

  bool opened_ = false;
  bool plain_ = true;  ///< 12-byte entries by chunk number; else ascending StoredChunks.
  std::uint64_t n_entries_ = 0;
  std::uint64_t entries_per_segment_ = 1;
  std::unique_ptr<NodeWindow> window_;
  Bytes own_copy_;  ///< Used for a small index, and if no window can be made.
  std::vector<const std::byte*> segments_;
};

}  // namespace tailrace
