// hybrid: a slot per chunk, sized by the ratio that the user expects and how far it may be off.
//
// All slots of a field are equal, so every rank knows every address without a word. Source: Bicer
// et al. 2014, hybrid method. Where we differ: the paper's slot is raw / (ratio - error), with the
// error in units of the ratio; ours is raw / ratio * (1 + error), with the error as a fraction, so
// that one error serves fields of all ratios, and any error makes sense.

#include <cmath>

#include "layout/layout.hpp"
#include "layout/place_by_index.hpp"

namespace tailrace {
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
