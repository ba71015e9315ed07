// Bounds for a size, bounds for a PSNR.

#include <algorithm>
#include <cmath>
#include <span>

#include "codec/value_lanes.hpp"
#include "core/codec_registry.hpp"
#include "field/candidates.hpp"
#include "field/chunk_estimator.hpp"
#include "field/codec_choice.hpp"
#include "model/dump_time.hpp"

namespace tailrace {
namespace {

constexpr SampleSize sample_size;
/// Loosest bound that a target sets if none was given; tighter ones follow by factors.
constexpr double kLoosestRelativeBound = 0.1;
constexpr double kBoundStep = 4;
constexpr std::size_t kNBounds = 13;  // down to 6e-9 of the range
/// Values of one chunk whose errors are measured: enough for 0.05 dB.
constexpr std::uint64_t kErrorValuesMax = 1U << 17;
/// Squared errors, divided by the bound's square, are summed as integers in this unit.
constexpr double kSquareUnit = 0x1p-20;
constexpr int kPsnrRounds = 2;
/// Largest possible variance relative to that of uniform errors: every error equals the bound.
/// Uniform errors themselves may exceed 1 a little by chance.
constexpr double kVarianceShareMax = 3;

/// True if the target sets this field's bound.
bool is_free(const FieldDefinition& definition) {
  const FieldOptions& options = definition.options;
  if (!is_floating(definition.dtype) || stored_plainly(definition)) return false;
  return options.bound.lossless() ? !options.bound_given : options.bound.mode != BoundMode::pw_rel;
}

double range_of(const FieldState& field) {
  return field.resolved.value_greatest - field.resolved.value_least;
}

/// Round to three digits, towards `up`: for bounds that users read.
double three_digits(double number, bool up) {
  // Powers of ten are exact here, so that the quotient is the number that the digits name.
  const double exponent = std::floor(std::log10(number)) - 2;
  const double power = std::pow(10.0, std::abs(exponent));
  const double digits = exponent < 0 ? number * power : number / power;
  const double whole = up ? std::ceil(digits) : std::floor(digits);
  return exponent < 0 ? whole / power : whole * power;
}

/// Codec request that the target assumes for the field.
CodecRequest target_request(const FieldState& field) {
  CodecRequest request = codec_request(field.definition, field.resolved);
  if (codec_is_ours_to_choose(field.definition.options) && !stored_plainly(field.definition)) {
    request.name = kYardstickCodec;
    request.settings.clear();
  }
  request.chunk_shape = field.resolved.chunk_shape;
  return request;
}

struct TargetField {
  FieldState* field = nullptr;
  bool free = false;  ///< The target sets its bound.
  ErrorBound given;
  double loosest = 0;  ///< Absolute bound of `given`; infinity: none was given.
  FieldSample sample;
  std::uint64_t square_sum = 0;  ///< Sum of this rank, then of all ranks, in units of kSquareUnit.
  std::uint64_t n_values = 0;
  double variance_share = 1;
};

double free_bound(const TargetField& target, double relative_bound) {
  return std::min(relative_bound * range_of(*target.field), target.loosest);
}

/// Collect all new fields with this rank's samples. Also finds the ranges of fields without a
/// bound. Collective; @returns this rank's failure.
Status take_samples(Comm& comm, std::vector<FieldState>& fields, std::vector<TargetField>& out) {
  for (FieldState& field : fields) {
    if (!field.makes_dataset()) continue;
    TargetField target;
    target.field = &field;
    target.free = is_free(field.definition);
    target.given = field.definition.options.bound;
    target.loosest = field.definition.options.bound.lossless()
                         ? std::numeric_limits<double>::infinity()
                         : field.resolved.absolute_bound;
    if (target.free) field.definition.options.bound = {BoundMode::rel, kLoosestRelativeBound};
    out.push_back(std::move(target));
  }
  Status failed = resolve_bounds(comm, fields);
  for (TargetField& target : out) {
    Result<FieldSample> sample = take_sample(*target.field, sample_size);
    if (!sample.ok() && failed.ok()) failed = sample.status();
    if (sample.ok()) target.sample = std::move(*sample);
  }
  return failed;
}

/// Set the field's bound; a bound that was given remains if it is tighter.
void set_bound(const TargetField& target, double relative_bound) {
  FieldState& field = *target.field;
  const double bound = relative_bound * range_of(field);
  field.resolved.absolute_bound = std::min(bound, target.loosest);
  field.definition.options.bound =
      bound < target.loosest ? ErrorBound{BoundMode::rel, relative_bound} : target.given;
}

/// Encoded bytes of this rank's share of a field, under a bound.
Result<double> predicted_bytes(const TargetField& target, double absolute_bound,
                               const std::string& plugin_path) {
  const FieldSample& sample = target.sample;
  CodecRequest request = target_request(*target.field);
  if (target.free) request.absolute_bound = absolute_bound;
  if (codec_entry(request.name).stores_plainly) return static_cast<double>(sample.rank_bytes);
  if (sample.parts.empty()) return 0.0;
  TAILRACE_TAKE(std::unique_ptr<Codec> codec, make_codec(request, plugin_path));
  TAILRACE_TAKE(auto estimator, ChunkEstimator::make(request, *codec, plugin_path));
  double n_bytes = 0;
  for (const StridedValues& part : sample.parts) {
    TAILRACE_TAKE(Estimate estimate, estimator->estimate(part, part.n_bytes()));
    n_bytes += estimate.encoded_bytes;
  }
  return n_bytes * static_cast<double>(sample.rank_bytes) / static_cast<double>(sample.part_bytes);
}

/// Add this rank's bytes of all fields at each of the bounds.
Status add_sizes(const std::vector<TargetField>& targets, const std::string& plugin_path,
                 std::span<std::uint64_t> sums) {
  for (const TargetField& target : targets) {
    double relative_bound = kLoosestRelativeBound;
    double n_bytes = 0;
    for (std::size_t k = 0; k < kNBounds; ++k, relative_bound /= kBoundStep) {
      // Sizes of fields outside the target, and at bounds beyond the loosest one, are the same
      // again.
      const double bound = free_bound(target, relative_bound);
      const bool same =
          k > 0 && (!target.free || bound == free_bound(target, relative_bound * kBoundStep));
      if (!same) {
        Result<double> predicted = predicted_bytes(target, bound, plugin_path);
        if (!predicted.ok()) {
          return predicted.status().within(target.field->definition.name());
        }
        n_bytes = *predicted;
      }
      sums[k] += static_cast<std::uint64_t>(std::llround(n_bytes));
    }
  }
  return Status();
}

Status bounds_for_size(Comm& comm, std::vector<TargetField>& targets, const FileOptions& options,
                       Status failed) {
  std::vector<std::uint64_t> sums(kNBounds + 1, 0);
  if (failed.ok()) failed = add_sizes(targets, options.plugin_path, sums);
  sums.back() = failed.ok() ? 0 : 1;
  comm.allreduce(std::span<std::uint64_t>(sums), Reduction::sum);
  if (sums.back() > 0) return comm.agree(failed);
  std::vector<SizeAtBound> sizes;
  double relative_bound = kLoosestRelativeBound;
  for (std::size_t k = 0; k < kNBounds; ++k, relative_bound /= kBoundStep) {
    sizes.push_back({relative_bound, static_cast<double>(sums[k])});
  }
  const std::optional<double> found =
      tightest_bound(sizes, static_cast<double>(options.target_bytes));
  if (!found) {
    return Status(Code::invalid_argument,
                  "target=size=" + bytes_text(options.target_bytes) +
                      " cannot be reached: a step needs about " + bytes_text(sums.front()) +
                      " even with the loosest allowed bound; choose a larger size");
  }
  const double common = three_digits(*found, true);
  for (const TargetField& target : targets) {
    FieldState& field = *target.field;
    if (codec_is_ours_to_choose(field.definition.options)) {
      TAILRACE_TRY(name_codec(std::string(kYardstickCodec), field.definition.options));
    }
    if (target.free && range_of(field) > 0) set_bound(target, common);
  }
  return Status();
}

/// Add the squared errors of the codec on one part, under the field's present bound.
Status add_errors(const StridedValues& part, const std::string& plugin_path, TargetField& target) {
  // Take as many indices of the slowest axis as give enough values.
  StridedValues piece = part;
  const std::uint64_t row = part.n_values() / part.shape.front();
  piece.shape.front() = std::clamp<std::uint64_t>(kErrorValuesMax / std::max<std::uint64_t>(row, 1),
                                                  1, part.shape.front());
  CodecRequest request = target_request(*target.field);
  request.chunk_shape = piece.shape;
  TAILRACE_TAKE(std::unique_ptr<Codec> codec, make_codec(request, plugin_path));
  Buffer original(piece.n_bytes());
  if (!original.allocated()) return Status(Code::out_of_memory, "no memory to sample errors");
  gather(piece, original.data());
  TAILRACE_TAKE(EncodedBytes encoded, codec->encode(Buffer::copy_of(original.bytes())));
  TAILRACE_TAKE(Buffer decoded, codec->decode(std::move(encoded)));
  const double bound = target.field->resolved.absolute_bound;
  const FillTest<double> is_fill(target.field->definition.options.fill_value);
  double squares = 0;
  const auto add = [&]<class T>(const T* before, const T* after) {
    for (std::uint64_t i = 0; i < piece.n_values(); ++i) {
      const auto x = static_cast<double>(before[i]);
      if (!std::isfinite(x) || is_fill(x)) continue;
      const double error = (x - static_cast<double>(after[i])) / bound;
      squares += error * error;
      ++target.n_values;
    }
  };
  if (piece.dtype == DType::f32) {
    add(reinterpret_cast<const float*>(original.data()),
        reinterpret_cast<const float*>(decoded.data()));
  } else {
    add(reinterpret_cast<const double*>(original.data()),
        reinterpret_cast<const double*>(decoded.data()));
  }
  target.square_sum += static_cast<std::uint64_t>(std::llround(squares / kSquareUnit));
  return Status();
}

/// Find the variance of each field's errors relative to uniform ones, from all ranks' samples.
/// Collective.
Status find_variance_shares(Comm& comm, std::vector<TargetField>& targets,
                            const std::string& plugin_path, Status failed) {
  std::vector<std::uint64_t> sums;
  for (TargetField& target : targets) {
    target.square_sum = target.n_values = 0;
    const bool wanted = target.free && target.field->resolved.absolute_bound > 0;
    for (std::size_t p = 0; wanted && failed.ok() && p < target.sample.parts.size(); ++p) {
      failed = add_errors(target.sample.parts[p], plugin_path, target)
                   .within(target.field->definition.name());
    }
    sums.insert(sums.end(), {target.square_sum, target.n_values});
  }
  sums.push_back(failed.ok() ? 0 : 1);
  comm.allreduce(std::span<std::uint64_t>(sums), Reduction::sum);
  if (sums.back() > 0) return comm.agree(failed);
  auto sum = sums.begin();
  for (TargetField& target : targets) {
    const auto squares = static_cast<double>(*sum++) * kSquareUnit;
    const auto n_values = static_cast<double>(*sum++);
    if (n_values == 0) continue;
    // A sample without errors means that the bound has no effect there; a floor keeps the result
    // finite.
    const double least_share = 1 / std::max(n_values, 1.0);
    target.variance_share = std::clamp(3 * squares / n_values, least_share, kVarianceShareMax);
  }
  return Status();
}

Status bounds_for_psnr(Comm& comm, std::vector<TargetField>& targets, const FileOptions& options,
                       const Status& failed) {
  const double wanted_db = options.target_psnr_db;
  for (int round = 0; round <= kPsnrRounds; ++round) {
    for (const TargetField& target : targets) {
      FieldState& field = *target.field;
      if (!target.free || !(range_of(field) > 0)) continue;
      // Fix the codec: another predictor makes other errors than those that were measured.
      if (codec_is_ours_to_choose(field.definition.options)) {
        TAILRACE_TRY(name_codec(std::string(kYardstickCodec), field.definition.options));
      }
      if (round > 0) {
        field.resolved.expected_psnr_db =
            psnr_for_bound(field.resolved.absolute_bound, range_of(field), target.variance_share);
      }
      if (round == kPsnrRounds) continue;
      const double bound = bound_for_psnr(wanted_db, range_of(field), target.variance_share);
      set_bound(target,
                std::min(three_digits(bound / range_of(field), false), kLoosestRelativeBound));
    }
    if (round == kPsnrRounds) break;
    TAILRACE_TRY(find_variance_shares(comm, targets, options.plugin_path, failed));
  }
  return Status();
}

}  // namespace

Status set_target_bounds(Comm& comm, std::vector<FieldState>& fields, const FileOptions& options) {
  if (options.target_bytes == 0 && options.target_psnr_db <= 0) return Status();
  if (options.target_bytes > 0 && options.target_psnr_db > 0) {
    return Status(Code::invalid_argument, "target=: give either a size or a PSNR, not both");
  }
  std::vector<TargetField> targets;
  const Status sampled = take_samples(comm, fields, targets);
  return options.target_bytes > 0 ? bounds_for_size(comm, targets, options, sampled)
                                  : bounds_for_psnr(comm, targets, options, sampled);
}

}  // namespace tailrace
