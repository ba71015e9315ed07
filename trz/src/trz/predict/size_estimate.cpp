// Estimate of a chunk's size: a rough choice of the predictor, sampled groups, and their price.
//
// Jin et al. 2022 (III-B) price the histogram of a sample's codes by Huffman's entropy and model
// the lossless stage by runs. The estimate does the same for trz's streams. Every class of groups
// is a section that costs its entropy plus the overhead of a Huffman code, or the cost of its runs.
// Planes and numbers of exceptions cost their actual size. zstd gains on positions of patches, and
// hardly elsewhere. The bits of exact chunks come from exact_sample.hpp. Constants are fitted on
// the 64^3 Nyx fields and Levitus' salinity and verified on the others: trz/DESIGN.md.

#include "trz/predict/choose.hpp"

#include <algorithm>
#include <cmath>

#include "trz/base/buffer.hpp"
#include "trz/base/set_number.hpp"
#include "trz/chunk_header.hpp"
#include "trz/entropy/code_sections.hpp"
#include "trz/entropy/code_stream.hpp"
#include "trz/exact/decimals.hpp"
#include "trz/predict/group_sample.hpp"
#include "trz/predict/lattice_coding.hpp"
#include "trz/predict/pointwise.hpp"
#include "trz/workspace.hpp"

namespace tailrace::trz {
namespace {

constexpr double kFixedBytes = 48;  // Head and parameters.
/// Number of runs of the rough choice. Candidates that it cannot distinguish have similar sizes.
constexpr std::size_t kRunsRough = 32;
/// Correction for neighbours on lattice points instead of decoded values. It matters where most
/// codes are zero and errors of the coarse levels propagate. Fitted on the 64^3 Nyx fields.
constexpr double kClosedLoop = 0.13;
constexpr double kClosedLoopFades = 0.6;
/// Root mean square of the estimate's error over fields of 4 to 8 MB, by bits per value.
constexpr double kSpreadLeast = 0.012;
constexpr double kSpreadSparse = 0.17;
constexpr double kSpreadFades = 0.25;
constexpr double kSpreadExact = 0.05;
/// Costs of sections: fitted by eye on the 64^3 Nyx fields; the estimate depends little on them.
constexpr double kTableBytes = 10;
constexpr double kTableBytesPerSymbol = 0.4;
constexpr double kHuffmanLoss = 1.01;
constexpr double kRunsLoss = 1.06;
/// Costs of patch positions before and after zstd; fitted on Levitus' salinity.
constexpr double kBytesPerChange = 1.2;
constexpr double kZstdOnPositions = 0.5;
constexpr double kSignsLoss = 1.1;  ///< Cost of sign bits relative to the entropy of their changes.
constexpr std::size_t kSlack = 64;

struct EstimateInput {
  const ChunkType& type;
  const Settings& settings;
  const StridedValues& values;
  Workspace& workspace;
  std::size_t n_values;
  Extents extents;
};

/// Standard deviation of the estimate, at a number of bits per value.
double spread_at(double bits) {
  return kSpreadLeast + kSpreadSparse / (1 + kSpreadFades * bits * bits);
}

bool uses_zstd(const Settings& settings) {
  return settings.lossless_stage == Choice::on ||
         (settings.lossless_stage == Choice::automatic && settings.preset != Preset::fast);
}

Estimate estimate_exact(const EstimateInput& input) {
  ChunkHead head;
  head.dtype = input.type.dtype;
  head.method = Method::exact;
  head.n_values = input.n_values;
  head.extents = input.extents;
  const std::size_t n_bytes = static_cast<std::size_t>(input.values.n_bytes());
  const auto bytes_of = [&](std::span<const std::byte> values) {
    return static_cast<double>(
        estimate_lossless_bytes(head, input.type, values, input.settings, input.workspace));
  };
  if (input.values.dense()) {
    return {bytes_of({input.values.data, n_bytes}), 1, kSpreadExact};
  }
  Buffer copy(n_bytes);
  if (!copy.allocated()) return {static_cast<double>(n_bytes), 1, kSpreadExact};
  gather(input.values, copy.bytes().data());
  return {bytes_of(std::as_const(copy).bytes()), 1, kSpreadExact};
}

/// Estimate of a byte stream: the count of each byte value in the chunk, and the number of sampled
/// bytes.
struct Stream {
  std::array<double, 256> count{};
  double n_sampled = 0;

  void add(const std::uint8_t* bytes, std::size_t n, double weight) {
    for (std::size_t i = 0; i < n; ++i) count[bytes[i]] += weight;
    n_sampled += static_cast<double>(n);
  }
  /// Bytes of the stream as a section: the smaller of Huffman coding and runs, including tables.
  double section_bytes() const {
    if (n_sampled == 0) return 0;
    double total = 0;
    double sum = 0;
    double most = 0;
    std::size_t n_symbols = 0;
    for (const double n : count) {
      if (n <= 0) continue;
      ++n_symbols;
      total += n;
      sum += n * log2_of(n);
      most = std::max(most, n);
    }
    if (n_symbols == 1) return 2;
    // Correction for the bias of a sample's entropy (Miller 1955).
    const double missing = static_cast<double>(n_symbols - 1) * 0.7213475 / n_sampled;
    const double entropy = total * std::min(log2_of(total) - sum / total + missing, 8.0);
    double bits = std::max(entropy * kHuffmanLoss, total);
    if (2 * most > total) bits = std::min(bits, entropy * kRunsLoss);
    return bits / 8 + kTableBytes + kTableBytesPerSymbol * static_cast<double>(n_symbols);
  }
};

/// Size of the sample's codes in the grouped form, with their streams as sections.
template <class Y>
double grouped_bytes(const GroupSample<Y>& sample, Workspace& workspace) {
  const std::size_t n = sample.n_groups();
  const std::size_t stream_bytes = n * kGroupCodes + kSlack;
  const std::size_t plane_bytes = n * 8 * kPlanesMax + kSlack;
  const std::size_t exception_bytes = 4 * (n * kExceptionsMax + kSlack);
  auto* room = workspace.area<std::uint8_t>(
      Slot::sample, kClasses * stream_bytes + plane_bytes + exception_bytes);
  if (room == nullptr) return 0;
  GroupCursor begin;
  begin.exceptions = reinterpret_cast<std::int32_t*>(room);
  begin.planes = room + exception_bytes;
  begin.classes = begin.planes + plane_bytes;
  for (std::size_t k = 1; k < kClasses; ++k) begin.bytes[k] = begin.classes + k * stream_bytes;
  GroupCursor end = begin;
  const GroupKernels& kernels = group_kernels(workspace.isa());
  std::array<Stream, kClasses> classes;
  Stream ids;
  Stream symbols;
  double plain_bits = 0;
  for (std::size_t g = 0; g < n; ++g) {
    const GroupCursor at = end;
    kernels.split(sample.codes() + g * kGroupCodes, 1, end);
    const std::size_t k = *at.classes;
    const double weight = sample.weight(g);
    ids.add(at.classes, 1, weight);
    if (k != 0) classes[k].add(at.bytes[k], class_bytes(k), weight);
    plain_bits += weight * 64 * static_cast<double>(class_planes(k));
    for (const std::int32_t* code = at.exceptions; code < end.exceptions; ++code) {
      const auto symbol = static_cast<std::uint8_t>(exception_symbol(*code));
      symbols.add(&symbol, 1, weight);
      plain_bits += symbol < 224 ? 0 : weight * (symbol - 224 + 7);
    }
  }
  double bytes = ids.section_bytes() + symbols.section_bytes() + plain_bits / 8;
  for (const Stream& stream : classes) bytes += stream.section_bytes();
  return bytes;
}

/// Size of the sample's codes in the packed form.
template <class Y>
double packed_bytes(const GroupSample<Y>& sample, Isa isa) {
  std::uint8_t planes[8 * 32 + kSlack];
  Stream widths;
  double plain_bytes = 0;
  for (std::size_t g = 0; g < sample.n_groups(); ++g) {
    std::uint8_t width = 0;
    group_kernels(isa).pack(sample.codes() + g * kGroupCodes, 1, &width, planes);
    widths.add(&width, 1, sample.weight(g));
    plain_bytes += sample.weight(g) * 8 * width;
  }
  return widths.section_bytes() + plain_bytes;
}

template <class Y>
Estimate estimate_lattice(const EstimateInput& input, const ValueSource<Y>& source, const Y* fill,
                          double bound) {
  SampledValues<Y> chunk;
  chunk.fill = fill;
  chunk.find_fill = input.type.kind != BoundKind::pointwise;
  chunk.source = &source;
  chunk.runs_max = kRunsRough;
  const Isa isa = input.workspace.isa();
  const Sampled sampled = sample_values(chunk, input.extents, bound, input.settings, isa);
  const std::optional<Lattice<Y>> lattice = make_lattice<Y>(bound, sampled.offset);
  if (!lattice || sampled.coarse_share > 0.25) return estimate_exact(input);
  if (sampled.all_equal) return {kFixedBytes, 1, 0};
  const Prediction& best = sampled.best();
  Y found{};
  chunk.fill = sampled.fill_of(fill, found);
  chunk.offset = sampled.offset;
  chunk.step = best.step != 0 ? best.step : static_cast<double>(lattice->step);
  const GroupSample<Y> sample(chunk, best, isa);
  const double misfit = sampled.misfit_share;
  const auto n_values = static_cast<double>(input.n_values);
  double bytes = input.settings.preset == Preset::fast ? packed_bytes(sample, isa)
                                                       : grouped_bytes(sample, input.workspace);
  const double bits = 8 * bytes / n_values;
  if (best.interpolated) bytes *= 1 + kClosedLoop / (1 + kClosedLoopFades * bits * bits);
  bytes += kFixedBytes + misfit * n_values * (sizeof(Y) + 1.0);
  const double positions = sample.change_share() * n_values * kBytesPerChange;
  const double with_stage = bytes + (uses_zstd(input.settings) ? kZstdOnPositions : 1) * positions;
  return {with_stage, (bytes + positions) / with_stage, spread_at(8 * with_stage / n_values)};
}

/// Bytes that a pointwise bound adds to the codes: sign bits, and positions of values without a y.
struct ExtraBytes {
  double sign_bytes = 0;
  double position_bytes = 0;
};

template <class T>
ExtraBytes bytes_beyond_codes(const EstimateInput& input, const ValueSource<T>& source,
                              const T* fill) {
  constexpr std::size_t n_run = 64;
  const std::size_t n_runs = std::clamp<std::size_t>(input.n_values / 8192, 1, 128);
  const std::size_t n = std::min(n_run, input.n_values);
  Scatter scatter;
  T buffer[n_run];
  double n_negative = 0;
  double n_turns = 0;
  double n_changes = 0;
  for (std::size_t r = 0; r < n_runs; ++r) {
    const T* run = source.run(scatter.below(input.n_values - n + 1), n, buffer);
    const auto special = [&](T value) {
      return value == 0 || !std::isfinite(value) || (fill != nullptr && value == *fill);
    };
    for (std::size_t i = 0; i < n; ++i) {
      n_negative += std::signbit(run[i]) ? 1 : 0;
      if (i == 0) continue;
      n_turns += std::signbit(run[i]) != std::signbit(run[i - 1]) ? 1 : 0;
      n_changes += special(run[i]) != special(run[i - 1]) ? 1 : 0;
    }
  }
  const auto n_seen = static_cast<double>(n * n_runs);
  const auto n_values = static_cast<double>(input.n_values);
  ExtraBytes extra;
  extra.position_bytes = n_changes / n_seen * n_values * kBytesPerChange;
  if (n_negative > 0 && n_negative < n_seen) {
    const double p = std::min(n_turns / n_seen, 0.5);
    const double bits = p > 0 ? -p * log2_of(p) - (1 - p) * log2_of(1 - p) : 0;
    extra.sign_bytes = n_values / 8 * std::min(bits * kSignsLoss, 1.0) + kTableBytes;
  }
  return extra;
}

template <class Y, class T>
Estimate estimate_pointwise(const EstimateInput& input, const PointwisePlan& plan,
                            const ValueSource<T>& source, const T* fill) {
  const PointwiseSource<T, Y> transformed(source, plan, fill, input.workspace.isa());
  Estimate estimate = estimate_lattice<Y>(input, transformed, nullptr, plan.y_bound);
  const ExtraBytes extra = bytes_beyond_codes(input, source, fill);
  const double with_stage =
      estimate.encoded_bytes + extra.sign_bytes +
      (uses_zstd(input.settings) ? kZstdOnPositions : 1) * extra.position_bytes;
  const double without =
      estimate.encoded_bytes * estimate.lossless_gain + extra.sign_bytes + extra.position_bytes;
  return {with_stage, without / with_stage, estimate.spread};
}

template <class T>
Estimate estimate_floats(const EstimateInput& input) {
  T fill_value{};
  const T* fill = nullptr;
  if (const double* const stated = set_number(input.type.fill_value); stated != nullptr) {
    fill_value = static_cast<T>(*stated);
    fill = &fill_value;
  }
  const StridedSource<T> source(input.values);
  if (input.type.kind != BoundKind::pointwise) {
    return estimate_lattice<T>(input, source, fill, input.type.bound);
  }
  const auto plan = PointwisePlan::for_bound(input.type.dtype, input.type.bound);
  if (!plan) return estimate_exact(input);
  if constexpr (sizeof(T) == 4) {
    if (plan->work == DType::f32) return estimate_pointwise<float>(input, *plan, source, fill);
  }
  return estimate_pointwise<double>(input, *plan, source, fill);
}

}  // namespace

Estimate estimate_chunk(const ChunkType& type, const Settings& settings,
                        const StridedValues& values, Workspace& workspace) {
  const FloatEnvironment environment;
  const auto n_values = static_cast<std::size_t>(values.n_values());
  const auto n_bytes = static_cast<std::size_t>(values.n_bytes());
  Estimate estimate;
  estimate.encoded_bytes = static_cast<double>(encoded_bytes_max(n_bytes));
  if (n_values < 2) return estimate;
  const EstimateInput input{type,      settings, values,
                            workspace, n_values, extents_of(values.shape, settings.dimensions)};
  const bool exact = !is_floating(type.dtype) || type.kind == BoundKind::exact || !(type.bound > 0);
  const double most = estimate.encoded_bytes;
  estimate = exact                      ? estimate_exact(input)
             : type.dtype == DType::f32 ? estimate_floats<float>(input)
                                        : estimate_floats<double>(input);
  estimate.encoded_bytes = std::clamp(estimate.encoded_bytes, 1.0, most);
  return estimate;
}

}  // namespace tailrace::trz
