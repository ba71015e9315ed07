// ChunkCache: decoded chunks that are likely to be read again, with LRU eviction.
//
// Invariant 1: entries, ready or being decoded, take at most the given cap.
// Invariant 2: an entry's values do not change once it is ready. Its holders may read them without
// a lock, even after the entry has been dropped.

#pragma once

#include <condition_variable>
#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "core/chunk_key.hpp"
#include "trz/base/buffer.hpp"
#include "trz/base/status.hpp"

namespace tailrace {

/// One decoded chunk, in native byte order, not clipped at the dataset's edge.
struct CachedChunk {
  Buffer values;
  bool ready = false;  ///< Guarded by the cache's lock.
  Status failure;      ///< Failure of decoding ahead; valid once ready.
};

/// Cache of decoded chunks, with LRU eviction. Thread-safe.
class ChunkCache {
 public:
  using Entry = std::shared_ptr<CachedChunk>;

  explicit ChunkCache(std::uint64_t bytes_max) : bytes_max_(bytes_max) {}

  /// Return a cached chunk, possibly still being decoded, and mark it as used. Null: not cached.
  Entry find(const ChunkKey& id);
  /// Wait until the entry is ready. @returns false if decoding it ahead failed; the caller then
  /// decodes the chunk itself and gets the error.
  bool wait(const Entry& entry);
  /// True if find() would return the chunk.
  bool holds(const ChunkKey& id);
  /// Reserve an entry for a chunk that the caller decodes and then passes to finish(). Evicts ready
  /// entries, but none that is being decoded. Null: no room, no memory, or it is already cached.
  Entry begin(const ChunkKey& id, std::uint64_t n_bytes);
  /// Cache the values of a decoded chunk, and evict others for it, unless it has no room.
  void add(const ChunkKey& id, Buffer values);
  /// Mark an entry as ready or failed.
  void finish(const ChunkKey& id, const Entry& entry, Status failure);
  /// Drop an entry if it is cached and ready.
  void drop(const ChunkKey& id);
  /// Drop all entries of a field. No decoding of these may be in progress. Cost: O(entries).
  void drop_field(std::size_t field);
  /// Drop all entries. No decoding may be in progress.
  void clear();
  /// Bytes that another entry may have without an eviction.
  std::uint64_t bytes_free();
  std::uint64_t bytes_max() const { return bytes_max_; }

 private:
  struct Kept {
    Entry entry;
    std::list<ChunkKey>::iterator use;
  };
  void drop(std::unordered_map<ChunkKey, Kept, ChunkKeyHash>::iterator kept);
  bool make_room(const ChunkKey& id, std::uint64_t n_bytes);
  void insert(const ChunkKey& id, const Entry& entry);

  std::uint64_t bytes_max_;
  std::uint64_t n_bytes_ = 0;
  std::mutex mutex_;
  std::condition_variable ready_;
  std::unordered_map<ChunkKey, Kept, ChunkKeyHash> kept_;
  std::list<ChunkKey> uses_;  ///< Least recently used first.
};

}  // namespace tailrace
