// KeptOriginals: the exact values of chunks that are only partly written, and lossy in the file.
//
// A program may write a chunk over several flushes: one time step each, say. Encoded again from
// what the file has, its first values would leave their bound. So this rank keeps the values as
// they were put, until all of the chunk's elements have been put once. Where they are not kept, for
// lack of room or because another rank wrote the chunk last, the chunk is stored raw.
//
// Invariant: values are used only if the chunk is where this rank's flush put it, with the bytes
// that this rank encoded from them.

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
  /// Keep a copy of a chunk's values, which confirm() and place() complete. If it has no room,
  /// chunks that neither this flush nor the one before has used are dropped; if that does not
  /// suffice, the new one is not kept. Nothing must be kept of the chunk: see take().
  void keep(const ChunkKey& key, std::span<const std::byte> values, std::vector<std::uint64_t> put);
  /// Note the bytes that the flush will write of a chunk; nothing if it is not kept.
  void confirm(const ChunkKey& key, std::span<const std::byte> stored);
  /// Note where the file has a chunk, after the commit; nothing if it is not kept.
  void place(const ChunkKey& key, std::uint64_t address);

  class Kept {
   public:
    /// Return the chunk, if the file has it at `address` with the bytes `stored`.
    std::optional<Chunk> if_stored(std::uint64_t address, std::span<const std::byte> stored) &&;

   private:
    friend class KeptOriginals;
    Chunk chunk_;
    std::uint64_t n_bytes_ = 0;        ///< Counted of the cap.
    std::optional<std::size_t> hash_;  ///< Hash of the stored bytes; not set: unconfirmed.
    std::size_t n_stored_ = 0;
    std::optional<std::uint64_t> address_;
    std::uint64_t flush_ = 0;  ///< The one that keeps it.
  };
  /// Remove and return what is kept of a chunk. To be called for each chunk of a flush.
  std::optional<Kept> take(const ChunkKey& key);

 private:
  using Map = std::unordered_map<ChunkKey, Kept, ChunkKeyHash>;
  bool reserve(std::uint64_t n_bytes);

  mutable std::mutex mutex_;
  Map kept_;
  std::uint64_t held_bytes_ = 0;
  std::uint64_t bytes_max_ = 0;
  std::uint64_t flush_ = 1;
  bool searched_ = false;  ///< This flush has dropped what earlier ones left.
};

}  // namespace tailrace
