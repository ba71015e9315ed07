// predictive: a slot per chunk, its predicted size times an extra space ratio, packed.
//
// All places are known before anything is encoded, so encoding and writing overlap with no further
// word between ranks; a chunk that comes out larger than its slot overflows (exec/placer). Source:
// Jin et al. 2022, section III-D and eq. 3. Where we differ: the paper splits an overflowing chunk
// and writes the excess after all others; here its size is known first, and it goes whole.

#include <algorithm>
#include <cmath>

#include "layout/layout.hpp"
#include "layout/space_ratio.hpp"

namespace tailrace {
namespace {

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

}  // namespace

Result<std::unique_ptr<Layout>> make_predictive_layout(const FieldOptions& options) {
  return std::unique_ptr<Layout>(std::make_unique<PredictiveLayout>(space_ratio(options.space)));
}

}  // namespace tailrace
