// ReadCache: decoded chunks that are likely to be read again, least recently used ones dropped.
//
// Invariant 1: what is kept is at most the cap given, ready or still being decoded.
// Invariant 2: an entry's values do not change once it is ready; who holds it may read without a
// lock, also after it has been dropped from here.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/buffer.hpp"
#include "core/status.hpp"
#include "exec/chunk_homes.hpp"

namespace tailrace {

/// One decoded chunk, in native byte order, not cut at the dataset's edge.
struct CachedChunk {
  Buffer values;
  bool ready = false;  ///< Under the cache's lock.
  Status failure;      ///< Of a chunk that was decoded ahead; valid once ready.
};

class ReadCache {
 public:
  using Entry = std::shared_ptr<CachedChunk>;

  explicit ReadCache(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  /// The chunk if it is here, perhaps still being decoded; it counts as used. Null: not here.
  Entry find(const ChunkKey& id);
  /// Wait until it is ready. @returns false: decoding it ahead has failed, and who needs it finds
  /// out why by decoding it.
  bool wait(const Entry& entry);
  /// Whether find() would have it.
  bool holds(const ChunkKey& id);
  /// Make room for a chunk that the caller decodes; then finish() it. Others are dropped for it,
  /// but none that is being decoded. Null: no room, or no memory, or it is here already.
  Entry begin(const ChunkKey& id, std::uint64_t n_bytes);
  /// The entry is ready, or has failed.
  void finish(const ChunkKey& id, const Entry& entry, Status failure);
  /// Drop all. Nothing may be under way.
  void clear();
  /// Bytes that one more entry may have without dropping anything.
  std::uint64_t bytes_free();
  std::uint64_t bytes_max() const { return bytes_max_; }

 private:
  struct Kept {
    Entry entry;
    std::list<ChunkKey>::iterator use;
  };
  void drop(std::unordered_map<ChunkKey, Kept, ChunkKeyHash>::iterator kept);

  std::uint64_t bytes_max_;
  std::uint64_t n_bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::unordered_map<ChunkKey, Kept, ChunkKeyHash> kept_;
  std::list<ChunkKey> uses_;  ///< Least recent first.
};

}  // namespace tailrace
