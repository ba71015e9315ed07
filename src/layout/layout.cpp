// All layouts except arena, and the registry.

#include "layout/layout.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/utf8.hpp"
#include "layout/arena.hpp"

namespace tailrace {

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

// --- Positions by shape: base + chunk_index * capacity, since all chunks of a field have the same
// capacity, including edge chunks.

namespace {

class LayoutByShape : public Layout {
 public:
  SizesNeeded sizes_needed() const final { return SizesNeeded::none; }
  BaseFrom base_from() const final { return BaseFrom::shape; }
  /// `raw_bytes` is the size of a full chunk, also for the last one: it only determines the stride.
  std::uint64_t capacity(const ChunkSizes& sizes) const override { return sizes.raw_bytes; }
  std::vector<Placement> place(std::span<const ChunkSizes> chunks, std::uint64_t base) const final {
    std::vector<Placement> placements;
    placements.reserve(chunks.size());
    for (const ChunkSizes& sizes : chunks) {
      const std::uint64_t stride = capacity(sizes);
      placements.push_back({base + sizes.chunk_index * stride, stride});
    }
    return placements;
  }
};

// --- contiguous: the uncompressed field in one run; each chunk's position depends only on the
// shape.
//
// The "chunks" here are slabs: all dimensions after the first one that is split are complete, so
// that a slab is one run of bytes. Ranks whose boxes are not slabs send their pieces to the slab's
// owner, so this is the two-phase write of collective buffering.

class ContiguousLayout final : public LayoutByShape {
 public:
  std::string_view name() const override { return "contiguous"; }
  bool contiguous() const override { return true; }
};

// --- sparse: each chunk at the position that its uncompressed bytes would have, with holes
// between.
//
// Needs no sizes and no rank waits, but the file is as long as the uncompressed data; only a file
// system with sparse files stores less. A chunk whose encoded form is larger than its values
// overflows. Source: Bicer et al. 2014, compression with sparse storage.

class SparseLayout final : public LayoutByShape {
 public:
  std::string_view name() const override { return "sparse"; }
};

// --- hybrid: a slot per chunk, sized by the ratio that the user expects and its possible error.
//
// All slots of a field are equal, so every rank knows every address without communication. Source:
// Bicer et al. 2014, hybrid method. The paper's slot is raw / (ratio - error), with the error in
// units of the ratio. Ours is raw / ratio * (1 + error), with the error as a fraction. So one error
// fits fields of all ratios, and any error is valid.

class HybridLayout final : public LayoutByShape {
 public:
  HybridLayout(double expected_ratio, double expected_error)
      : share_((1 + expected_error) / expected_ratio) {}
  std::string_view name() const override { return "hybrid"; }
  std::uint64_t capacity(const ChunkSizes& sizes) const override {
    return static_cast<std::uint64_t>(std::ceil(static_cast<double>(sizes.raw_bytes) * share_));
  }

 private:
  double share_;  ///< Fraction of the uncompressed bytes.
};

Result<std::unique_ptr<Layout>> make_hybrid_layout(const FieldOptions& options) {
  if (!(options.expected_ratio > 0)) {
    return Status(Code::invalid_argument,
                  "layout hybrid needs the expected compression ratio, such as hybrid:3.5; layouts "
                  "arena and predictive predict it");
  }
  return std::unique_ptr<Layout>(
      std::make_unique<HybridLayout>(options.expected_ratio, options.expected_error));
}

// --- claimed: encoded chunks go to the file's tail in the order in which they become ready.
//
// An atomic fetch-and-add advances the tail, once per write instead of once per chunk. No rank
// waits for another, no reserved space stays unused, and the file has no gaps.

class ClaimedLayout : public Layout {
 public:
  std::string_view name() const override { return "claimed"; }
  SizesNeeded sizes_needed() const override { return SizesNeeded::actual; }
  BaseFrom base_from() const override { return BaseFrom::claim; }
  std::uint64_t capacity(const ChunkSizes& sizes) const override { return sizes.encoded_bytes; }
};

// --- front: like claimed, but the file's metadata precede all chunks.

class FrontLayout final : public ClaimedLayout {
 public:
  std::string_view name() const override { return kFrontLayout; }
};

// --- dense: chunks are packed rank after rank once every rank's encoded sizes are known.
//
// The file has no unused space and a reproducible order, but no rank can write before the slowest
// one has encoded its round. Source: Bicer et al. 2014, dense storage.

class DenseLayout final : public Layout {
 public:
  std::string_view name() const override { return "dense"; }
  SizesNeeded sizes_needed() const override { return SizesNeeded::actual; }
  BaseFrom base_from() const override { return BaseFrom::prefix; }
  std::uint64_t capacity(const ChunkSizes& sizes) const override { return sizes.encoded_bytes; }
};

// --- predictive: a slot per chunk, its predicted size times an extra space ratio, packed.
//
// All positions are known before encoding, so encoding and writing overlap without further
// communication; a chunk that is larger than its slot overflows (exec/placer). Source: Jin et al.
// 2022, section III-D and eq. 3. The paper splits an overflowing chunk and writes the excess after
// all others. Here the size is known first, so the chunk is written elsewhere as one piece.

class PredictiveLayout final : public Layout {
 public:
  explicit PredictiveLayout(double ratio) : ratio_(ratio) {}
  std::string_view name() const override { return "predictive"; }
  SizesNeeded sizes_needed() const override { return SizesNeeded::predicted; }
  BaseFrom base_from() const override { return BaseFrom::prefix; }
  std::uint64_t capacity(const ChunkSizes& sizes) const override {
    const auto predicted = static_cast<double>(sizes.predicted_bytes);
    const double compression_ratio = static_cast<double>(sizes.raw_bytes) / std::max(predicted, 1.);
    const double reserved = predicted * space_ratio_at(ratio_, compression_ratio);
    return static_cast<std::uint64_t>(std::ceil(reserved));
  }

 private:
  double ratio_;  ///< R_space.
};

Result<std::unique_ptr<Layout>> make_predictive_layout(const FieldOptions& options) {
  return std::unique_ptr<Layout>(std::make_unique<PredictiveLayout>(space_ratio(options.space)));
}

// --- the registry

/// Factory of a layout that needs no options.
template <class Plain>
Result<std::unique_ptr<Layout>> make_plain(const FieldOptions&) {
  return std::unique_ptr<Layout>(std::make_unique<Plain>());
}

constexpr std::array<LayoutEntry, 8> kLayouts = {{
    {"claimed", "packed at the file's tail, claimed when bytes are ready; no rank waits",
     &make_plain<ClaimedLayout>},
    {"arena", "one run per rank, reserved from predicted sizes, packed as chunks become ready",
     &make_arena_layout},
    {"predictive",
     "a slot per chunk, its predicted size times extra space (predictive:SPACE); no rank waits",
     &make_predictive_layout},
    {"dense", "packed after all ranks have exchanged their sizes; waits for the slowest encoder",
     &make_plain<DenseLayout>},
    {"hybrid", "a slot per chunk by the ratio of hybrid:RATIO:ERROR; no communication",
     &make_hybrid_layout},
    {"sparse", "each chunk at the place of its uncompressed bytes, holes between",
     &make_plain<SparseLayout>},
    {"contiguous", "uncompressed, one run per field, place fixed by the shape (codec none)",
     &make_plain<ContiguousLayout>},
    {kFrontLayout, "as claimed, and all metadata and chunk indexes in one block at the file's head",
     &make_plain<FrontLayout>},
}};

}  // namespace

std::span<const LayoutEntry> layout_registry() { return kLayouts; }

Result<std::unique_ptr<Layout>> make_layout(std::string_view name, const FieldOptions& options) {
  for (const LayoutEntry& entry : kLayouts) {
    if (entry.name == name) return entry.make(options);
  }
  return unknown_name("layout", name, kLayouts);
}

}  // namespace tailrace
