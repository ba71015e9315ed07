// KeptOriginals: the exact values of chunks that are only partly written, and lossy in the file.
//
// A program may write a chunk over several flushes: one time step each, say. Encoded again from
// what the file has, its first values would leave their bound. So this rank keeps the values as
// they were put, until all of the chunk's elements have been put once. Where they are not kept, for
// lack of room or because another rank wrote the chunk last, the chunk is stored raw.
//
// Invariant: values are used only if the file has, byte for byte, what this rank encoded from them.

#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "core/chunk_key.hpp"
#include "trz/base/buffer.hpp"

namespace tailrace {

/// Thread-safe, apart from start_flush().
class KeptOriginals {
 public:
  struct Chunk {
    Buffer values;                   ///< All elements of the full chunk, in native byte order.
    std::vector<std::uint64_t> put;  ///< One bit per element that was put so far.
  };

  /// Start a flush, in which chunks may take up to `bytes_max`. If more are kept, all are dropped.
  void start_flush(std::uint64_t bytes_max);
  std::uint64_t held_bytes() const;
  /// Keep a copy of a chunk's values, which confirm() must confirm. If it has no room, chunks
  /// that neither this flush nor the one before has used are dropped; if that does not suffice,
  /// the new one is not kept. Replaces what was kept of the chunk.
  void keep(const ChunkKey& key, std::span<const std::byte> values, std::vector<std::uint64_t> put);
  /// Note the bytes that the file will have of a chunk; nothing if it is not kept.
  void confirm(const ChunkKey& key, std::span<const std::byte> stored);
  /// Return and forget a chunk. std::nullopt: not kept, or the file has other bytes.
  std::optional<Chunk> take(const ChunkKey& key, std::span<const std::byte> stored);

 private:
  struct Stored {
    std::size_t n_bytes = 0;
    std::size_t hash = 0;
    bool operator==(const Stored&) const = default;
  };
  struct Kept {
    Chunk chunk;
    std::optional<Stored> stored;  ///< Not set: unconfirmed.
    std::uint64_t flush = 0;       ///< The last one that used it.
  };
  using Map = std::unordered_map<ChunkKey, Kept, ChunkKeyHash>;
  static std::uint64_t bytes_of(const Chunk& chunk);
  static Stored identity(std::span<const std::byte> stored);
  Map::iterator drop(Map::iterator kept);

  mutable std::mutex mutex_;
  Map kept_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t bytes_max_ = 0;
  std::uint64_t flush_ = 1;
  bool searched_ = false;  ///< This flush has dropped what earlier ones left.
};

}  // namespace tailrace
