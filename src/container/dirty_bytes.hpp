// DirtyBytes: what HDF5 has written and storage has not yet. SpanSet: which addresses are fresh.
//
// Plain data structures for the metadata driver: no HDF5, no I/O. HDF5 writes its metadata block by
// block, nearly always the same block at the same place, but blocks are also freed and their space
// used again in other pieces; so overlaps are resolved byte by byte, the latest write winning.

#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

namespace tailrace {

/// A set of addresses, kept as disjoint half-open spans. Neighbours are joined.
class SpanSet {
 public:
  /// Add [address, address + n_bytes). Cost: O(log spans) when spans come in order.
  void insert(std::uint64_t address, std::uint64_t n_bytes);
  /// Whether every byte of [address, address + n_bytes) is in the set; an empty span always is.
  bool contains(std::uint64_t address, std::uint64_t n_bytes) const;
  void clear() { end_of_.clear(); }

 private:
  std::map<std::uint64_t, std::uint64_t> end_of_;  // start -> end
};

/// Buffered writes as disjoint segments, ordered by address.
/// Invariant: segments never overlap and none is empty.
class DirtyBytes {
 public:
  struct Segment {
    std::vector<std::byte> bytes;
    bool superblock = false;  ///< HDF5 wrote it as superblock; it has its own phase in a commit.
  };

  /// Record a write; it replaces what was recorded for these bytes before.
  void put(std::uint64_t address, std::span<const std::byte> bytes, bool superblock);
  /// Forget whatever is recorded for [address, address + n_bytes).
  void drop(std::uint64_t address, std::uint64_t n_bytes);
  /// Copy the recorded bytes of [address, address + bytes.size()) over `bytes`, leaving the rest.
  void overlay(std::uint64_t address, std::span<std::byte> bytes) const;
  /// One past the last recorded byte; 0 if nothing is recorded.
  std::uint64_t end() const;
  bool empty() const { return segments_.empty(); }
  void clear() { segments_.clear(); }
  const std::map<std::uint64_t, Segment>& segments() const { return segments_; }

 private:
  std::map<std::uint64_t, Segment> segments_;
};

}  // namespace tailrace
