// place_by_index: the places of layouts with BaseFrom::shape, where a chunk's index gives its
// place.

#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "layout/layout.hpp"

namespace tailrace {

/// One place per chunk at base + chunk_index * capacity; `layout` gives all chunks of the field the
/// same capacity, the edge chunks too.
inline std::vector<Placement> place_by_index(std::span<const ChunkSizes> chunks, std::uint64_t base,
                                             const Layout& layout) {
  std::vector<Placement> placements;
  placements.reserve(chunks.size());
  for (const ChunkSizes& sizes : chunks) {
    const std::uint64_t stride = layout.capacity(sizes);
    placements.push_back({base + sizes.chunk_index * stride, stride});
  }
  return placements;
}

}  // namespace tailrace
