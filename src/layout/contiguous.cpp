// contiguous: the uncompressed field in one run; each chunk's place follows from the shape alone.
//
// The "chunks" here are slabs: all dimensions behind the first one that is cut are whole, so that a
// slab is one run of bytes. Ranks whose boxes are no slabs send their pieces to the slab's owner,
// which makes this the two-phase write of collective buffering.

#include "layout/layout.hpp"
#include "layout/place_by_index.hpp"

namespace tailrace {
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

}  // namespace tailrace
