// The registry of layouts, and the packing that most of them share.

#include <array>
#include <string>

#include "layout/layout.hpp"

namespace tailrace {
namespace {

constexpr std::array<LayoutEntry, 7> kLayouts = {{
    {"claimed", "packed at the file's tail, claimed when bytes are ready; nobody waits",
     &make_claimed_layout},
    {"arena", "one run per rank, reserved from predicted sizes, packed as chunks become ready",
     &make_arena_layout},
    {"predictive", "a slot per chunk, its predicted size times extra space (space=); nobody waits",
     &make_predictive_layout},
    {"dense", "packed after all ranks have exchanged their sizes; waits for the slowest encoder",
     &make_dense_layout},
    {"hybrid", "a slot per chunk by expected-ratio= and expected-error=; no communication",
     &make_hybrid_layout},
    {"sparse", "each chunk at the place of its uncompressed bytes, holes between",
     &make_sparse_layout},
    {"contiguous", "uncompressed, one run per field, place fixed by the shape (codec none)",
     &make_contiguous_layout},
}};

}  // namespace

std::span<const LayoutEntry> layout_registry() { return kLayouts; }

Result<std::unique_ptr<Layout>> make_layout(std::string_view name, const FieldOptions& options) {
  std::string known;
  for (const LayoutEntry& entry : kLayouts) {
    if (entry.name == name) return entry.make(options);
    known += (known.empty() ? "" : ", ") + std::string(entry.name);
  }
  return Status(Code::invalid_argument,
                "layout \"" + std::string(name) + "\" is unknown; there are: " + known);
}

std::vector<Placement> Layout::place(std::span<const ChunkSizes> chunks, std::uint64_t base) const {
  std::vector<Placement> placements;
  placements.reserve(chunks.size());
  for (const ChunkSizes& sizes : chunks) {
    const std::uint64_t reserved = capacity(sizes);
    placements.push_back({base, reserved});
    base += reserved;
  }
  return placements;
}

}  // namespace tailrace
