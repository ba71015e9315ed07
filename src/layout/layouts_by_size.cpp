// The layouts whose places follow from sizes, actual or predicted: claimed, dense, predictive.

#include "layout/layout.hpp"

#include <algorithm>
#include <cmath>

#include "layout/arena.hpp"

namespace tailrace {

// --- claimed: encoded chunks go to the file's tail in the order in which they become ready.
//
// The tail is moved by an atomic fetch-and-add, once per write rather than once per chunk. No rank
// waits for another, nothing is reserved in vain, and the file holds no gaps.

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

// --- dense: chunks are packed rank after rank once every rank's encoded sizes are known.
//
// The file is exact and its order is reproducible, but no rank can write before the slowest one has
// encoded its round. Source: Bicer et al. 2014, dense storage.

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

// --- predictive: a slot per chunk, its predicted size times an extra space ratio, packed.
//
// All places are known before anything is encoded, so encoding and writing overlap with no further
// word between ranks; a chunk that comes out larger than its slot overflows (exec/placer). Source:
// Jin et al. 2022, section III-D and eq. 3. Where we differ: the paper splits an overflowing chunk
// and writes the excess after all others; here its size is known first, and it goes whole.

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
