// ReadIndex: where the chunks of one dataset lie, as a reader learns it.
//
// Three states. At first nothing is known, and chunks are looked up one by one as slabs need them:
// one small slab of a dataset with a million chunks costs microseconds. When the look-ups have cost
// as much as reading the whole index would (or one finds nothing, which only the whole index can
// explain), this rank reads all of it. Or the ranks together open it: rank 0 reads, each node keeps
// one copy in memory that its ranks share.

#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/comm.hpp"
#include "describe/stored_file.hpp"
#include "hdf5/chunk_index_reader.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

class ReadIndex {
 public:
  /// Find chunks; those that were never written have 0 encoded bytes. Not collective. `file` is
  /// asked unless the index is open(). @error corrupt, io_error
  Status find(StoredFile& file, const StoredDataset& dataset, std::uint64_t n_chunks,
              std::span<const std::uint64_t> chunk_indexes, std::vector<StoredChunk>& found);

  /// Have rank 0 read the index and every node keep it. Collective. `file`: rank 0's.
  /// Cost: 0.2 us a chunk at rank 0, a broadcast of 12 bytes a chunk (32 where a filter was skipped
  /// or most chunks are missing), in pieces.
  Status open(Comm& comm, StoredFile* file, const StoredDataset& dataset, std::uint64_t n_chunks);
  bool opened() const { return opened_; }
  /// Whether find() needs no file any more.
  bool complete() const { return opened_ || walked_; }
  /// Make the destructor local.
  void abandon();

 private:
  StoredChunk at(std::uint64_t chunk_index) const;
  StoredChunk shared_at(std::uint64_t chunk_index) const;
  Status walk(StoredFile& file, const StoredDataset& dataset);
  const std::byte* entry(std::uint64_t position) const;

  std::unordered_map<std::uint64_t, StoredChunk> looked_up_;
  std::uint64_t n_lookups_ = 0;
  bool walked_ = false;
  ChunkTable table_;  ///< This rank's own copy.
  ChunkTable::Part part_;

  bool opened_ = false;
  bool plain_ = true;  ///< Entries of 12 bytes by chunk number; else StoredChunks, ascending.
  std::uint64_t n_entries_ = 0;
  std::uint64_t entries_per_segment_ = 1;
  std::unique_ptr<NodeWindow> window_;
  Bytes own_copy_;  ///< Where no window can be had.
  std::vector<const std::byte*> segments_;
};

}  // namespace tailrace
