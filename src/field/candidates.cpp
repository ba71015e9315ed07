// Estimates of one field's candidates on one rank.

#include "field/candidates.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/codec_registry.hpp"
#include "core/option_table.hpp"
#include "exec/lane_clock.hpp"
#include "field/chunk_estimator.hpp"
#include "model/dump_time.hpp"

namespace tailrace {
namespace {

/// Interpolation is missing because trz chooses it where it is better.
constexpr std::array<PredictorSetting, 3> kPredictors = {
    PredictorSetting::dimension_1, PredictorSetting::dimension_2, PredictorSetting::dimension_3};
/// trz itself picks the predictor with the fewest bytes: naming one can only save time.
constexpr double kPredictorLeastShare = 1;

/// A put and how many chunks it touches.
struct TouchedPut {
  const PutRecord* put;
  Box chunks;
};

/// The part of the put that lies in the `index`-th chunk it touches.
Box part_of(const TouchedPut& touched, const ChunkGrid& grid, std::uint64_t index) {
  Shape at(touched.chunks.rank());
  for (std::size_t d = at.size(); d-- > 0;) {
    at[d] = touched.chunks.start[d] + index % touched.chunks.count[d];
    index /= touched.chunks.count[d];
  }
  return intersect(touched.put->box, grid.clipped_box(grid.index_of(at)));
}

/// The middle of a box: as many indices of the slowest axis as fit `n_bytes`, at least one.
Box middle_of(Box box, DType dtype, std::uint64_t n_bytes) {
  if (box.rank() == 0 || box.n_elements() == 0) return box;  // A scalar has no slowest index.
  const std::uint64_t row_bytes = box.n_elements() / box.count.front() * dtype_bytes(dtype);
  const std::uint64_t n_rows = std::clamp<std::uint64_t>(n_bytes / row_bytes, 1, box.count.front());
  box.start.front() += (box.count.front() - n_rows) / 2;
  box.count.front() = n_rows;
  return box;
}

Status add_part(const TouchedPut& touched, Box part, DType dtype, std::uint64_t pulled_bytes_max,
                FieldSample& sample) {
  const PutRecord& put = *touched.put;
  if (put.source != nullptr) part = middle_of(part, dtype, pulled_bytes_max);
  if (put.source == nullptr) {
    Buffer buffer;
    TAILRACE_TAKE(const StridedValues values, put.view(part, dtype, buffer));
    sample.parts.push_back(values);
    if (buffer.allocated()) sample.read.push_back(std::move(buffer));
  } else {
    Buffer values(part.n_elements() * dtype_bytes(dtype));
    if (!values.allocated())
      return Status(Code::out_of_memory, "not enough memory to sample a chunk");
    TAILRACE_TRY(put.source->look(part, values.bytes()));
    sample.parts.push_back(strided_part(part, values.data(), dtype, part));
    sample.read.push_back(std::move(values));
  }
  sample.part_bytes += sample.parts.back().n_bytes();
  return Status();
}

/// True if a failure means that the codec cannot serve this field, rather than a fault of the
/// system.
bool is_refusal(const Status& failure) {
  return failure.code() == Code::unsupported || failure.code() == Code::plugin_missing ||
         failure.code() == Code::invalid_argument || failure.code() == Code::codec_failed;
}

/// Core seconds per uncompressed byte and per written byte, in addition to a codec's speed curve.
/// The curve is measured with warm values and buffers. In a step the values come from memory,
/// buffers are new, and the output is copied into the page cache. Fitted to steps of real Nyx
/// fields, 2 ranks on 2 cores, storage not limited, 101 MB at rel 1e-3. On AMD EPYC: none 74,
/// trz,preset=fast 44 to 49, trz 94 ms. An earlier fit on an Intel Xeon with AVX-512 (62, 45 and 61
/// ms) gave 1 / 2.5e9 and 1 / 0.9e9.
constexpr double kHandlingSPerByte = 1 / 2.8e9;
constexpr double kCopySPerByte = 1 / 0.7e9;

}  // namespace

bool codec_is_ours_to_choose(const FieldOptions& options) {
  return options.codec == kAutoCodec || (!options.codec_given && !options.bound.lossless());
}

Result<FieldSample> take_sample(const FieldState& field, const SampleSize& size) {
  FieldSample sample;
  const ChunkGrid grid = field.grid();
  const DType dtype = field.definition.dtype;
  std::vector<TouchedPut> puts;
  for (const PutRecord& put : field.puts) {
    if (put.box.empty()) continue;
    puts.push_back({&put, grid.touched(put.box)});
    sample.n_rank_chunks += puts.back().chunks.n_elements();
    sample.rank_bytes += put.box.n_elements() * dtype_bytes(dtype);
  }
  const std::uint64_t n_parts = std::min(
      size.n_parts_max, (sample.n_rank_chunks + size.chunks_per_part - 1) / size.chunks_per_part);
  std::uint64_t before = 0;  // chunks of the preceding puts
  std::uint64_t taken = 0;
  for (const TouchedPut& touched : puts) {
    const std::uint64_t n_chunks = touched.chunks.n_elements();
    for (; taken < n_parts; ++taken) {
      const std::uint64_t wanted = (2 * taken + 1) * sample.n_rank_chunks / (2 * n_parts);
      if (wanted >= before + n_chunks) break;
      TAILRACE_TRY(add_part(touched, part_of(touched, grid, wanted - before), dtype,
                            size.pulled_bytes_max, sample));
    }
    before += n_chunks;
  }
  return sample;
}

FieldCandidates::FieldCandidates(const FieldState& field, FieldSample sample,
                                 std::string plugin_path)
    : field_(&field), sample_(std::move(sample)), plugin_path_(std::move(plugin_path)) {
  const CodecRequest base = codec_request(field.definition, field.resolved);
  lossy_ = is_floating(base.dtype) && (base.absolute_bound > 0 || base.pointwise_bound > 0);
  for (const CodecVariant* variant : codec_variants()) {
    const std::optional<double> share = lossy_ ? variant->share_in_bound : variant->share_exact;
    if (!share) continue;
    CandidateView& view = views_.emplace_back();
    view.codec = variant->codec;
    view.least_share = *share;
    view.look_share = variant->look_share;
    view.encode_doubt = variant->encode_doubt;
    view.of_yardstick = variant->of_yardstick;
    view.of_unstaged = variant->of_unstaged;
  }
  first_predictor_ = views_.size();
  if (!lossy_) return;
  for (const PredictorSetting setting : kPredictors) {
    CandidateView& view = views_.emplace_back();
    view.codec = std::string(kYardstickCodec) + "," + std::string(predictor_setting_text(setting));
    view.least_share = kPredictorLeastShare;
  }
}

Result<CodecRequest> FieldCandidates::request_for(std::size_t candidate,
                                                  const Shape& chunk_shape) const {
  FieldOptions named;
  TAILRACE_TRY(name_codec(views_[candidate].codec, named));
  CodecRequest request = codec_request(field_->definition, field_->resolved);
  request.name = named.codec;
  request.settings = named.codec_settings;
  request.chunk_shape = chunk_shape;
  return request;
}

Status FieldCandidates::estimate_parts(std::size_t candidate) {
  CandidateView& view = views_[candidate];
  TAILRACE_TAKE(CodecRequest request, request_for(candidate, field_->resolved.chunk_shape));
  TAILRACE_TAKE(std::unique_ptr<Codec> codec, make_codec(request, plugin_path_));
  if (sample_.parts.empty()) return Status();
  TAILRACE_TAKE(auto estimator, ChunkEstimator::make(request, *codec, plugin_path_));
  for (const StridedValues& part : sample_.parts) {
    TAILRACE_TAKE(Estimate estimate, estimator->estimate(part, part.n_bytes()));
    view.encoded_bytes += estimate.encoded_bytes;
    view.unstaged_bytes += estimate.encoded_bytes * estimate.lossless_gain;
  }
  return Status();
}

std::size_t FieldCandidates::yardstick() const {
  const auto found = std::ranges::find(views_, kYardstickCodec, &CandidateView::codec);
  TAILRACE_CHECK(found != views_.end());
  return static_cast<std::size_t>(found - views_.begin());
}

Status FieldCandidates::derive_from_yardstick(CandidateView& view) {
  const std::size_t plain = yardstick();
  TAILRACE_TRY(look_at(plain));
  const CandidateView& known = views_[plain];
  view.encoded_bytes =
      view.of_yardstick * (view.of_unstaged ? known.unstaged_bytes : known.encoded_bytes);
  view.sampled = known.sampled;
  view.refused = known.refused;
  return Status();
}

Status FieldCandidates::look_at(std::size_t candidate) {
  CandidateView& view = views_[candidate];
  if (view.sampled || !view.refused.empty()) return Status();
  if (view.of_yardstick > 0) return derive_from_yardstick(view);
  const Status looked = estimate_parts(candidate);
  if (!looked.ok() && !is_refusal(looked)) {
    return looked.within(field_->definition.name());
  }
  view.sampled = looked.ok();
  view.refused = looked.message();
  return Status();
}

Status FieldCandidates::look_at_cheap() {
  for (std::size_t c = 0; c < first_predictor_; ++c) {
    if (views_[c].least_share == 0) TAILRACE_TRY(look_at(c));
  }
  return Status();
}

Status FieldCandidates::search_predictors(const std::function<double(std::size_t)>& step_s) {
  if (first_predictor_ == views_.size()) return Status();
  const Shape& chunk = field_->resolved.chunk_shape;
  const auto n_dimensions =
      std::count_if(chunk.begin(), chunk.end(), [](std::uint64_t extent) { return extent > 1; });
  Status failed;
  search_predictor(static_cast<std::size_t>(n_dimensions), [&](PredictorSetting setting) {
    const auto at = std::find(kPredictors.begin(), kPredictors.end(), setting);
    const std::size_t candidate =
        at == kPredictors.end()
            ? yardstick()
            : first_predictor_ + static_cast<std::size_t>(at - kPredictors.begin());
    if (Status looked = look_at(candidate); !looked.ok()) failed = looked;
    return views_[candidate].sampled ? step_s(candidate) : std::numeric_limits<double>::infinity();
  });
  return failed;
}

Status FieldCandidates::measure(std::size_t candidate) {
  CandidateView& view = views_[candidate];
  for (const StridedValues& part : sample_.parts) {
    TAILRACE_TAKE(CodecRequest request, request_for(candidate, part.shape));
    Result<std::unique_ptr<Codec>> codec = make_codec(request, plugin_path_);
    if (!codec.ok()) return is_refusal(codec.status()) ? Status() : codec.status();
    const bool verified =
        verifies(field_->definition.options.verify, view.codec, (*codec)->lossy());
    double least_s = std::numeric_limits<double>::infinity();
    std::uint64_t n_bytes = 0;
    for (int round = 0; round < 2; ++round) {
      Buffer values(part.n_bytes());
      if (!values.allocated()) return Status(Code::out_of_memory, "no memory to measure codecs");
      gather(part, values.data());
      const double start_s = thread_cpu_s();
      Result<EncodedBytes> encoded = (*codec)->encode(std::move(values));
      if (!encoded.ok()) return is_refusal(encoded.status()) ? Status() : encoded.status();
      n_bytes = encoded->buffer.n_bytes();
      if (verified) {
        Result<Buffer> decoded = (*codec)->decode(std::move(*encoded));
        if (!decoded.ok()) return is_refusal(decoded.status()) ? Status() : decoded.status();
      }
      least_s = std::min(least_s, thread_cpu_s() - start_s);
    }
    view.measured_bytes += static_cast<double>(n_bytes);
    view.measured_s += least_s;
  }
  return Status();
}

bool verifies(Verify wish, const std::string& codec, bool lossy) {
  if (wish != Verify::automatic) return wish == Verify::on;
  return lossy && !codec_entry(codec).proves_bound;
}

namespace {

struct Times {
  const CodecProfile* known = nullptr;
  double encode_doubt = 1;
};

/// The profile's times of a codec. A codec that is measured separately does not use the times of
/// another one: an older profile, without times of this codec, then has none.
Times times_of(const MachineProfile& profile, const std::string& codec) {
  Times times{profile.find(codec)};
  for (const CodecVariant* variant : codec_variants()) {
    if (variant->codec != codec) continue;
    times.encode_doubt = variant->encode_doubt;
    const bool of_another = times.known != nullptr && times.known->codec != codec;
    if (of_another && variant->encode[0] > 0) times.known = nullptr;
  }
  return times;
}

}  // namespace

std::optional<double> candidate_seconds(const MachineProfile& profile, const std::string& codec,
                                        double raw_bytes, double encoded_bytes, bool verified) {
  const Times times = times_of(profile, codec);
  if (times.known == nullptr) return std::nullopt;
  if (raw_bytes <= 0) return 0.0;
  double encode_s = encoded_bytes * kCopySPerByte;
  if (!codec_entry(codec).stores_plainly) {
    encode_s += times.encode_doubt * times.known->encode.seconds(raw_bytes, encoded_bytes) +
                raw_bytes * kHandlingSPerByte;
  }
  return encode_s + (verified ? times.known->decode.seconds(raw_bytes, encoded_bytes) : 0);
}

std::optional<double> least_candidate_seconds(const MachineProfile& profile,
                                              const std::string& codec, double raw_bytes,
                                              bool verified) {
  const Times times = times_of(profile, codec);
  if (times.known == nullptr) return std::nullopt;
  const double encode_s = times.encode_doubt * raw_bytes / times.known->encode.greatest_bytes_per_s;
  return encode_s + (verified ? raw_bytes / times.known->decode.greatest_bytes_per_s : 0);
}

Status name_codec(const std::string& codec, FieldOptions& options) {
  // Keep this flag: without it integers are exempt from a lossy codec.
  const bool for_field = options.codec_given_for_field;
  TAILRACE_TRY(apply_field_options("codec=" + codec, options));
  options.codec_given_for_field = for_field;
  return Status();
}

}  // namespace tailrace
