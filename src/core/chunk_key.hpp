// ChunkKey: names one chunk among those of several fields.

#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace tailrace {

/// Identifies a chunk in a step, flush or read.
struct ChunkKey {
  std::size_t field = 0;          ///< Field, variable or dataset, as the caller numbers them.
  std::uint64_t chunk_index = 0;  ///< Row-major in the field's grid.
  // clang-tidy 14 takes the 0 that the compiler inserts here for a null pointer.
  auto operator<=>(const ChunkKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

struct ChunkKeyHash {
  std::size_t operator()(const ChunkKey& key) const {
    return std::hash<std::uint64_t>()(key.chunk_index * 0x9E3779B97F4A7C15ULL + key.field);
  }
};

}  // namespace tailrace
