// One pass over this rank's chunks, then a gather.

#include "prediction_check.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "exec/lane_clock.hpp"
#include "field/chunk_estimator.hpp"

namespace tailrace::bench {
namespace {

/// Codec to check; auto itself has no sizes, so trz replaces it.
std::string checked_codec(const BenchOptions& options) {
  return options.codec == "auto" ? "trz" : options.codec;
}

std::string codec_text(const BenchOptions& options) {
  std::string text = checked_codec(options);
  for (const auto& [key, value] : options.codec_settings) text += "," + key + "=" + value;
  return text;
}

Status check_field(const BenchContext& context, const CodecProfile* curves, std::size_t f,
                   std::vector<ChunkCheck>& checks) {
  const BenchField& field = context.work.fields[f];
  const BenchOptions& options = context.options;
  Result<std::unique_ptr<Codec>> codec =
      make_bench_codec(options, checked_codec(options), options.codec_settings, field);
  if (!codec.ok()) return codec.status();
  Result<std::unique_ptr<ChunkEstimator>> estimator =
      ChunkEstimator::make(codec_request(checked_codec(options), options.codec_settings, field),
                           **codec, options.plugin_path);
  if (!estimator.ok()) return estimator.status();
  const std::uint64_t chunk_bytes = field.chunk_bytes();
  Status status;
  for_each_position(field.grid().touched(field.box), [&](const Shape& at) {
    if (!status.ok()) return;
    const Box box = field.grid().full_box(field.grid().index_of(at));
    ChunkCheck check;
    check.field = f;
    const StridedValues values = strided_part(field.box, field.values.data(), field.dtype, box);
    double start_s = thread_cpu_s();
    const Result<Estimate> estimate = (*estimator)->estimate(values, chunk_bytes);
    check.sample_s = thread_cpu_s() - start_s;
    Buffer chunk(chunk_bytes);
    if (!estimate.ok() || !chunk.allocated()) {
      status = estimate.ok() ? Status(Code::out_of_memory, "not enough memory for a chunk")
                             : estimate.status();
      return;
    }
    gather(values, chunk.data());
    start_s = thread_cpu_s();
    const Result<EncodedBytes> encoded = (*codec)->encode(std::move(chunk));
    check.encode_s = thread_cpu_s() - start_s;
    status = encoded.status();
    if (!status.ok()) return;
    check.predicted_bytes = estimate->encoded_bytes;
    check.encoded_bytes = static_cast<double>(encoded->buffer.n_bytes());
    if (curves != nullptr) {
      check.predicted_encode_s =
          curves->encode.seconds(static_cast<double>(chunk_bytes), check.predicted_bytes);
    }
    checks.push_back(check);
  });
  return status;
}

}  // namespace

double PredictionCheck::mean_size_error() const {
  double sum = 0;
  for (const ChunkCheck& chunk : chunks) {
    sum += std::fabs(chunk.predicted_bytes / chunk.encoded_bytes - 1);
  }
  return chunks.empty() ? 0 : sum / static_cast<double>(chunks.size());
}

double PredictionCheck::size_error_percentile_95() const {
  if (chunks.empty()) return 0;
  std::vector<double> errors;
  for (const ChunkCheck& chunk : chunks) {
    errors.push_back(std::fabs(chunk.predicted_bytes / chunk.encoded_bytes - 1));
  }
  std::sort(errors.begin(), errors.end());
  return errors[(errors.size() - 1) * 95 / 100];
}

double PredictionCheck::sampling_share() const {
  double sample_s = 0;
  double encode_s = 0;
  for (const ChunkCheck& chunk : chunks) {
    sample_s += chunk.sample_s;
    encode_s += chunk.encode_s;
  }
  return encode_s > 0 ? sample_s / encode_s : 0;
}

Result<PredictionCheck> check_predictions(const BenchContext& context,
                                          const MachineProfile& profile) {
  PredictionCheck check;
  check.codec = codec_text(context.options);
  check.bound = context.setting.bound;
  const CodecProfile* curves = profile.find(check.codec);
  std::vector<ChunkCheck> mine;
  Status status;
  for (std::size_t f = 0; f < context.work.fields.size() && status.ok(); ++f) {
    status = check_field(context, curves, f, mine)
                 .within("field \"" + context.work.fields[f].path + "\"");
  }
  TAILRACE_TRY(context.comm.agree(status));
  for (const Bytes& bytes : context.comm.gather(std::as_bytes(std::span(mine)), 0)) {
    std::vector<ChunkCheck> theirs(bytes.size() / sizeof(ChunkCheck));
    std::memcpy(theirs.data(), bytes.data(), bytes.size());
    check.chunks.insert(check.chunks.end(), theirs.begin(), theirs.end());
  }
  return check;
}

}  // namespace tailrace::bench
