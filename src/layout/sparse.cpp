// sparse: each chunk at the place that its uncompressed bytes would have, holes between.
//
// Nothing must be known and nobody waits, but the file is as long as the uncompressed data; only a
// file system that keeps holes stores less. A chunk that its codec has made larger than its values
// overflows. Source: Bicer et al. 2014, compression with sparse storage.

#include "layout/layout.hpp"
#include "layout/place_by_index.hpp"

namespace tailrace {
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

}  // namespace tailrace
