// portable: lossy within the bound, and readable by every HDF5 without a plug-in.
//
// Values are rounded (rounding.hpp), then encoded by HDF5's shuffle and deflate. A reader sees an
// ordinary gzip dataset; nothing has to be undone. The rounding of a chunk is chosen by
// measurement. Four pieces of it, 1/32 together, are rounded and deflated at level 1 in each of
// three ways. The smallest result wins; the more accurate one unless another saves 1 %. The choice
// depends only on the chunk's values, so the bytes are the same on every thread.

#include <algorithm>
#include <cstring>

#include "codec/deflate.hpp"
#include "codec/registry.hpp"
#include "codec/rounding.hpp"
#include "codec/value_lanes.hpp"
#include "core/byte_order.hpp"
#include "core/codec_settings.hpp"
#include "core/filter_pipeline.hpp"

namespace tailrace {
namespace {

constexpr std::size_t kPieces = 4;
constexpr std::size_t kPieceValuesMin = 1024;  // Shorter pieces are too short to show runs.

/// Grid: Lattice<T> or MantissaGrid<T>.
template <class T, class Grid>
class PortableCodec final : public CodecOver {
 public:
  /// @param sampler  null: values are rounded to nearest, without a sample.
  PortableCodec(std::shared_ptr<const Codec> pipeline, std::unique_ptr<Codec> sampler,
                std::size_t sample_values, Grid grid, std::optional<T> fill)
      : CodecOver(std::move(pipeline)),
        sampler_(std::move(sampler)),
        sample_values_(sample_values),
        grid_(grid),
        fill_(fill) {
    if (sampler_ == nullptr) return;
    to_nearest_ = std::make_unique<PortableCodec>(inner_, nullptr, 0, grid, fill);
  }

  bool lossy() const override { return true; }
  /// Each way of rounding yields multiples of the step, which rounding to nearest keeps, or values
  /// that stay as they are. Values that were `held` at one of the latter may differ.
  const Codec* keeping_decoded() const override {
    return sampler_ == nullptr ? this : to_nearest_.get();
  }
  bool keeps_decoded(std::span<const std::byte> values) const override {
    Buffer rounded = Buffer::copy_of(values);
    if (!rounded.allocated()) return false;
    round_values(grid_, Rounding::nearest, fill_, reinterpret_cast<T*>(rounded.data()),
                 values.size() / sizeof(T));
    return std::memcmp(rounded.data(), values.data(), values.size()) == 0;
  }
  bool keeps_bound_by_construction() const override { return true; }
  Result<EncodedBytes> encode(Buffer values) const override {
    T* data = reinterpret_cast<T*>(values.data());
    const std::size_t n = values.n_bytes() / sizeof(T);
    TAILRACE_TAKE(Rounding rounding, choose(data, n));
    round_values(grid_, rounding, fill_, data, n);
    return CodecOver::encode(std::move(values));
  }

 private:
  Result<Rounding> choose(const T* data, std::size_t n) const {
    if (sampler_ == nullptr || n < sample_values_) return Rounding::nearest;
    Rounding best = Rounding::nearest;
    double least_bytes = 0;
    for (const Rounding rounding : {Rounding::nearest, Rounding::coarse, Rounding::held}) {
      Buffer sample(sample_values_ * sizeof(T));
      if (!sample.allocated()) {
        return Status(Code::out_of_memory, "codec portable: no memory for a sample of " +
                                               std::to_string(sample_values_) + " values");
      }
      T* picked = reinterpret_cast<T*>(sample.data());
      const std::size_t n_piece = sample_values_ / kPieces;
      for (std::size_t piece = 0; piece < kPieces; ++piece) {
        const std::size_t start = piece * (n - n_piece) / (kPieces - 1);
        std::memcpy(picked + piece * n_piece, data + start, n_piece * sizeof(T));
        round_values(grid_, rounding, fill_, picked + piece * n_piece, n_piece);
      }
      TAILRACE_TAKE(EncodedBytes encoded, sampler_->encode(std::move(sample)));
      const auto n_bytes = static_cast<double>(encoded.buffer.n_bytes());
      if (rounding == Rounding::nearest || n_bytes < 0.99 * least_bytes) {
        least_bytes = n_bytes;
        best = rounding;
      }
    }
    return best;
  }

  std::unique_ptr<Codec> sampler_;  ///< Stages like the pipeline's, at level 1, for sample_values_
                                    ///< values.
  std::unique_ptr<PortableCodec> to_nearest_;
  std::size_t sample_values_;
  Grid grid_;
  std::optional<T> fill_;
};

/// The filters after the rounding.
std::unique_ptr<Codec> make_filters(const CodecRequest& request,
                                    std::vector<std::unique_ptr<FilterStage>> stages) {
  std::unique_ptr<Codec> filters =
      make_pipeline_codec({.name = "portable"}, request, std::move(stages));
  if (!request.swapped) return filters;
  return std::make_unique<SwappingCodec>(std::move(filters), dtype_bytes(request.dtype));
}

template <class T, class Grid>
std::unique_ptr<Codec> make_with_grid(const CodecRequest& request, std::unique_ptr<Codec> pipeline,
                                      const Grid& grid) {
  const std::uint64_t n = n_elements(request.chunk_shape);
  const std::uint64_t n_piece = std::min<std::uint64_t>(
      n / kPieces, std::max<std::uint64_t>(kPieceValuesMin, n / (32 * kPieces)));
  CodecRequest sample = request;
  sample.chunk_shape = {std::max<std::uint64_t>(1, n_piece) * kPieces};
  sample.settings.emplace_back("level", "1");
  CodecSettings settings(sample);
  std::vector<std::unique_ptr<FilterStage>> stages = make_deflate_stages(settings, request);
  std::unique_ptr<Codec> sampler = make_filters(sample, std::move(stages));
  return std::make_unique<PortableCodec<T, Grid>>(std::move(pipeline), std::move(sampler),
                                                  sample.chunk_shape[0], grid,
                                                  fill_as<T>(request.fill_value));
}

/// Make the codec; only the pipeline if the bound leaves nothing to round.
template <class T>
Result<std::unique_ptr<Codec>> make_for_type(const CodecRequest& request,
                                             std::unique_ptr<Codec> pipeline) {
  if (request.pointwise_bound > 0) {
    if constexpr (std::is_floating_point_v<T>) {
      const std::optional<MantissaGrid<T>> grid = MantissaGrid<T>::within(request.pointwise_bound);
      return grid ? make_with_grid<T>(request, std::move(pipeline), *grid) : std::move(pipeline);
    }
    return Status(Code::unsupported,
                  "codec portable: a pw_rel bound needs f32 or f64 values, not " +
                      std::string(dtype_name(request.dtype)));
  }
  const std::optional<Lattice<T>> lattice = Lattice<T>::within(request.absolute_bound);
  return lattice ? make_with_grid<T>(request, std::move(pipeline), *lattice) : std::move(pipeline);
}

}  // namespace

Result<std::unique_ptr<Codec>> make_portable_codec(const CodecRequest& request,
                                                   const std::string&) {
  CodecSettings settings(request);
  std::vector<std::unique_ptr<FilterStage>> stages = make_deflate_stages(settings, request);
  TAILRACE_TRY(settings.finish());
  std::unique_ptr<Codec> pipeline = make_filters(request, std::move(stages));
  return visit_dtype(request.dtype,
                     [&]<class T>() { return make_for_type<T>(request, std::move(pipeline)); });
}

}  // namespace tailrace
