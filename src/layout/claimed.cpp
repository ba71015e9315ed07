// claimed: encoded chunks go to the file's tail in the order in which they become ready.
//
// The tail is moved by an atomic fetch-and-add, once per write rather than once per chunk. No rank
// waits for another, nothing is reserved in vain, and the file holds no gaps.

#include "layout/layout.hpp"

namespace tailrace {
namespace {

class ClaimedLayout final : public Layout {
 public:
  std::string_view name() const override { return "claimed"; }
  SizesNeeded sizes_needed() const override { return SizesNeeded::actual; }
  BaseFrom base_from() const override { return BaseFrom::claim; }
  std::uint64_t capacity(const ChunkSizes& sizes) const override { return sizes.encoded_bytes; }
};

}  // namespace

Result<std::unique_ptr<Layout>> make_claimed_layout(const FieldOptions&) {
  return std::unique_ptr<Layout>(std::make_unique<ClaimedLayout>());
}

}  // namespace tailrace
