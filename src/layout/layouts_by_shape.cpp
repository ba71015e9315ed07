// The layouts whose places follow from shapes alone: contiguous, sparse, hybrid.

#include "layout/layout.hpp"

#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

namespace tailrace {

// --- place_by_index: the places of layouts with BaseFrom::shape, where a chunk's index gives its
// place.

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

// --- contiguous: the uncompressed field in one run; each chunk's place follows from the shape
// alone.
//
// The "chunks" here are slabs: all dimensions behind the first one that is cut are whole, so that a
// slab is one run of bytes. Ranks whose boxes are no slabs send their pieces to the slab's owner,
// which makes this the two-phase write of collective buffering.

namespace {

class ContiguousLayout final : public Layout {
 public:
  std::string_view name() const override { return "contiguous"; }
  SizesNeeded sizes_needed() const override { return SizesNeeded::none; }
  BaseFrom base_from() const override { return BaseFrom::shape; }
  bool contiguous() const override { return true; }
  std::uint64_t capacity(const ChunkSizes& sizes) const override { return sizes.raw_bytes; }

  /// `raw_bytes` is the size of a whole slab, for the last one too: it only gives the stride.
  std::vector<Placement> place(std::span<const ChunkSizes> chunks,
                               std::uint64_t base) const override {
    return place_by_index(chunks, base, *this);
  }
};

}  // namespace

Result<std::unique_ptr<Layout>> make_contiguous_layout(const FieldOptions&) {
  return std::unique_ptr<Layout>(std::make_unique<ContiguousLayout>());
}

// --- sparse: each chunk at the place that its uncompressed bytes would have, holes between.
//
// Nothing must be known and nobody waits, but the file is as long as the uncompressed data; only a
// file system that keeps holes stores less. A chunk that its codec has made larger than its values
// overflows. Source: Bicer et al. 2014, compression with sparse storage.

namespace {

class SparseLayout final : public Layout {
 public:
  std::string_view name() const override { return "sparse"; }
  SizesNeeded sizes_needed() const override { return SizesNeeded::none; }
  BaseFrom base_from() const override { return BaseFrom::shape; }
  std::uint64_t capacity(const ChunkSizes& sizes) const override { return sizes.raw_bytes; }
  std::vector<Placement> place(std::span<const ChunkSizes> chunks,
                               std::uint64_t base) const override {
    return place_by_index(chunks, base, *this);
  }
};

}  // namespace

Result<std::unique_ptr<Layout>> make_sparse_layout(const FieldOptions&) {
  return std::unique_ptr<Layout>(std::make_unique<SparseLayout>());
}

// --- hybrid: a slot per chunk, sized by the ratio that the user expects and how far it may be off.
//
// All slots of a field are equal, so every rank knows every address without a word. Source: Bicer
// et al. 2014, hybrid method. Where we differ: the paper's slot is raw / (ratio - error), with the
// error in units of the ratio; ours is raw / ratio * (1 + error), with the error as a fraction, so
// that one error serves fields of all ratios, and any error makes sense.

namespace {

class HybridLayout final : public Layout {
 public:
  HybridLayout(double expected_ratio, double expected_error)
      : share_((1 + expected_error) / expected_ratio) {}
  std::string_view name() const override { return "hybrid"; }
  SizesNeeded sizes_needed() const override { return SizesNeeded::none; }
  BaseFrom base_from() const override { return BaseFrom::shape; }
  std::uint64_t capacity(const ChunkSizes& sizes) const override {
    return static_cast<std::uint64_t>(std::ceil(static_cast<double>(sizes.raw_bytes) * share_));
  }
  std::vector<Placement> place(std::span<const ChunkSizes> chunks,
                               std::uint64_t base) const override {
    return place_by_index(chunks, base, *this);
  }

 private:
  double share_;  ///< Of the uncompressed bytes.
};

}  // namespace

Result<std::unique_ptr<Layout>> make_hybrid_layout(const FieldOptions& options) {
  if (!(options.expected_ratio > 0)) {
    return Status(Code::invalid_argument,
                  "layout hybrid needs expected-ratio=, the uncompressed over the encoded bytes; "
                  "layouts arena and predictive find it out");
  }
  return std::unique_ptr<Layout>(
      std::make_unique<HybridLayout>(options.expected_ratio, options.expected_error));
}

}  // namespace tailrace
