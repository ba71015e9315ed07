// dense: chunks are packed rank after rank once every rank's encoded sizes are known.
//
// The file is exact and its order is reproducible, but no rank can write before the slowest one has
// encoded its round. Source: Bicer et al. 2014, dense storage.

#include "layout/layout.hpp"

namespace tailrace {
namespace {

class DenseLayout final : public Layout {
 public:
  std::string_view name() const override { return "dense"; }
  SizesNeeded sizes_needed() const override { return SizesNeeded::actual; }
  BaseFrom base_from() const override { return BaseFrom::prefix; }
  std::uint64_t capacity(const ChunkSizes& sizes) const override { return sizes.encoded_bytes; }
};

}  // namespace

Result<std::unique_ptr<Layout>> make_dense_layout(const FieldOptions&) {
  return std::unique_ptr<Layout>(std::make_unique<DenseLayout>());
}

}  // namespace tailrace
