// Estimators for codecs with a model of themselves, and the black-box estimator for all others.

#include "field/chunk_estimator.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/codec_registry.hpp"
#include "model/block_sample.hpp"

namespace tailrace {
namespace {

/// The codec's own recipe, if it has one. A lossless codec works on bytes in storage order, so a
/// run of bytes serves. Other codecs transform or predict over longer distances than small cubes
/// have, so one large cube serves. The shares take at most 3 % of the encode time of 8 MB chunks
/// (measured: src/model/README.md).
SampleRecipe recipe_for(const CodecRequest& request, const Codec& codec) {
  if (const auto& own = codec_entry(request.name).sample; own) return *own;
  if (!codec.lossy()) return {0, 16U << 10, 0.02, 0.02};
  SampleRecipe cube = {0, 0, 0.03, 0.05};
  const auto n_values = static_cast<double>(n_elements(request.chunk_shape));
  const auto n_dimensions = static_cast<double>(
      std::ranges::count_if(request.chunk_shape, [](std::uint64_t extent) { return extent > 1; }));
  cube.extent = static_cast<std::uint64_t>(
      std::max(std::ceil(std::pow(cube.share * n_values, 1 / std::max(n_dimensions, 1.0))), 1.0));
  return cube;
}

/// A box of about `run_bytes` that is one run of a row-major array of this shape.
Shape run_shape(const Shape& shape, std::uint64_t n_values) {
  Shape run(shape.size(), 1);
  for (std::size_t d = shape.size(); d-- > 0;) {
    run[d] = std::clamp<std::uint64_t>(n_values, 1, shape[d]);
    n_values /= run[d];
  }
  return run;
}

/// Blocks that fit every chunk of a shape, each smaller than the chunk. Nothing if the chunk is too
/// small for the sample to save much.
BlockSample sample_of(const Shape& shape, DType dtype, const SampleRecipe& recipe) {
  Shape block(shape.size(), recipe.extent);
  if (recipe.extent == 0) block = run_shape(shape, recipe.run_bytes / dtype_bytes(dtype));
  for (std::size_t d = 0; d < shape.size(); ++d) block[d] = std::min(block[d], shape[d]);
  const double wanted = recipe.share * static_cast<double>(n_elements(shape));
  const double n_blocks = std::ceil(wanted / static_cast<double>(n_elements(block)));
  return scattered_blocks(shape, block, static_cast<std::size_t>(std::max(n_blocks, 1.0)));
}

/// Asks the codec's model.
class ModelEstimator final : public ChunkEstimator {
 public:
  explicit ModelEstimator(const Codec& codec) : codec_(codec) {}

  Result<Estimate> estimate(const StridedValues& values, std::uint64_t chunk_bytes) const override {
    std::optional<Estimate> estimate = codec_.estimate(values);
    if (!estimate) {
      return Status(Code::internal, "codec " + std::string(codec_.name()) +
                                        " gave no estimate of its encoded size");
    }
    estimate->encoded_bytes *=
        static_cast<double>(chunk_bytes) / static_cast<double>(values.n_bytes());
    return *estimate;
  }

 private:
  const Codec& codec_;
};

/// Estimates another codec from the yardstick's estimate of the same values.
class YardstickEstimator final : public ChunkEstimator {
 public:
  YardstickEstimator(std::unique_ptr<Codec> yardstick, const CodecEntry& entry,
                     const CodecRequest& request)
      : yardstick_(std::move(yardstick)),
        entry_(entry),
        n_chunk_values_(n_elements(request.chunk_shape)) {}

  Result<Estimate> estimate(const StridedValues& values, std::uint64_t chunk_bytes) const override {
    const std::optional<Estimate> known = yardstick_->estimate(values);
    if (!known) {
      return Status(Code::internal, "codec " + std::string(yardstick_->name()) +
                                        " gave no estimate of its encoded size");
    }
    const auto element = static_cast<double>(dtype_bytes(values.dtype));
    return entry_.by_yardstick(8 * known->encoded_bytes / static_cast<double>(values.n_values()),
                               static_cast<double>(n_chunk_values_),
                               static_cast<double>(chunk_bytes) / element);
  }

 private:
  std::unique_ptr<Codec> yardstick_;
  const CodecEntry& entry_;
  std::uint64_t n_chunk_values_;
};

/// Deviation for a chunk whose sample the codec has refused: the codec may accept the chunk.
constexpr double kSpreadRefused = 0.5;

/// Add leading extents of 1, which chunks of a field over time have but its values in memory lack.
StridedValues with_leading_ones(StridedValues values, std::size_t rank) {
  while (values.shape.size() < rank) {
    const std::uint64_t all = values.shape.empty() ? 1 : values.shape[0] * values.strides[0];
    values.shape.insert(values.shape.begin(), 1);
    values.strides.insert(values.strides.begin(), all);
  }
  return values;
}

/// Runs a codec that was made for the sample's shape on the gathered sample.
class SampleEstimator final : public ChunkEstimator {
 public:
  SampleEstimator(std::unique_ptr<Codec> codec, Shape chunk_shape, BlockSample sample,
                  double spread)
      : codec_(std::move(codec)),
        chunk_shape_(std::move(chunk_shape)),
        sample_(std::move(sample)),
        spread_(spread) {}

  Result<Estimate> estimate(const StridedValues& entry, std::uint64_t chunk_bytes) const override {
    const StridedValues values = with_leading_ones(entry, chunk_shape_.size());
    const std::size_t sample_bytes = sample_.n_values() * dtype_bytes(values.dtype);
    Buffer gathered(sample_bytes);
    if (!gathered.allocated()) return Status(Code::out_of_memory, "no memory to sample a chunk");
    if (values.shape == chunk_shape_) {
      gather_blocks(values, sample_, gathered.data());
    } else {
      gather_part(values, gathered.bytes());
    }
    Result<EncodedBytes> encoded = codec_->encode(std::move(gathered));
    if (!encoded.ok() && encoded.status().code() == Code::codec_failed) {
      return Estimate{static_cast<double>(chunk_bytes), 1, kSpreadRefused};  // Stored unfiltered.
    }
    if (!encoded.ok()) return encoded.status();
    const double scale = static_cast<double>(chunk_bytes) / static_cast<double>(sample_bytes);
    return Estimate{static_cast<double>(encoded->buffer.n_bytes()) * scale, 1, spread_};
  }

 private:
  /// Fill the sample from a part of a chunk: with the blocks of the part, repeated as needed.
  void gather_part(const StridedValues& values, std::span<std::byte> to) const {
    const BlockSample part =
        scattered_blocks(values.shape, sample_.block_shape, sample_.starts.size());
    Buffer blocks(part.n_values() * dtype_bytes(values.dtype));
    gather_blocks(values, part, blocks.data());
    for (std::size_t at = 0; at < to.size(); at += blocks.n_bytes()) {
      std::memcpy(to.data() + at, blocks.data(), std::min(blocks.n_bytes(), to.size() - at));
    }
  }

  std::unique_ptr<Codec> codec_;
  Shape chunk_shape_;
  BlockSample sample_;
  double spread_;
};

/// True if the codec has a model of itself. This does not depend on the values.
bool has_model(const Codec& codec, const CodecRequest& request) {
  const std::uint64_t zero = 0;
  const Shape one(request.chunk_shape.size(), 1);
  return codec.estimate({reinterpret_cast<const std::byte*>(&zero), request.dtype, one, one})
      .has_value();
}

}  // namespace

Result<std::unique_ptr<ChunkEstimator>> ChunkEstimator::make(const CodecRequest& request,
                                                             const Codec& codec,
                                                             const std::string& plugin_path) {
  using Made = std::unique_ptr<ChunkEstimator>;
  if (has_model(codec, request)) return Made(std::make_unique<ModelEstimator>(codec));
  const CodecEntry& entry = codec_entry(request.name);
  if (entry.by_yardstick != nullptr) {
    CodecRequest of_yardstick = request;
    of_yardstick.name = kYardstickCodec;
    of_yardstick.settings.clear();
    Result<std::unique_ptr<Codec>> yardstick = make_codec(of_yardstick);
    if (yardstick.ok() && has_model(**yardstick, request)) {
      return Made(std::make_unique<YardstickEstimator>(std::move(*yardstick), entry, request));
    }
  }
  CodecRequest sample_request = request;
  const SampleRecipe recipe = recipe_for(request, codec);
  BlockSample sample = sample_of(request.chunk_shape, request.dtype, recipe);
  sample_request.chunk_shape = sample.gathered_shape();
  Result<std::unique_ptr<Codec>> second = make_codec(sample_request, plugin_path);
  if (!second.ok()) {
    // A codec may refuse the sample's shape: then the sample is the complete chunk, slow but
    // correct.
    sample = scattered_blocks(request.chunk_shape, request.chunk_shape, 1);
    second = make_codec(request, plugin_path);
  }
  if (!second.ok()) return second.status();
  return Made(std::make_unique<SampleEstimator>(std::move(*second), request.chunk_shape,
                                                std::move(sample), recipe.spread));
}

Result<std::optional<StridedValues>> values_in_memory(const ChunkGrid& grid,
                                                      std::uint64_t chunk_index, DType dtype,
                                                      std::span<const PutRecord> puts,
                                                      std::span<const LocalPart> parts,
                                                      Buffer& buffer) {
  const Box held = grid.clipped_box(chunk_index);
  const LocalPart* largest = nullptr;
  for (const LocalPart& part : parts) {
    if (puts[part.put_index].values == nullptr) continue;
    const Box common = intersect(part.box, held);
    if (common.empty()) continue;
    if (largest == nullptr || part.box.n_elements() > largest->box.n_elements()) largest = &part;
  }
  if (largest == nullptr) return std::optional<StridedValues>();
  const Box common = intersect(largest->box, held);
  TAILRACE_TAKE(const StridedValues values, puts[largest->put_index].view(common, dtype, buffer));
  return std::optional(values);
}

}  // namespace tailrace
