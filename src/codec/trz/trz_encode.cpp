// Encoding a chunk: from its sample to the smallest of the forms that are worth trying.
//
// encode() is the story: what the bound asks for (exact, absolute, pointwise), what a sample says
// (constant, no lattice fits, which predictor), the coding itself, and last the comparison with
// the values as they are: a chunk never grows by more than its head.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "codec/trz/chunk_header.hpp"
#include "codec/trz/entropy/patches.hpp"
#include "codec/trz/exact/exact.hpp"
#include "codec/trz/kernels/float_environment.hpp"
#include "codec/trz/predict/lattice_coding.hpp"
#include "codec/trz/predict/pointwise.hpp"
#include "codec/trz/trz.hpp"

namespace tailrace::trz {
namespace {

constexpr std::size_t kHeadBytesMax = 64;
constexpr std::size_t kSlack = 64;

template <class T>
using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

/// What came of one way to encode: bytes in the workspace's trial area, nothing, or a failure.
struct Attempt {
  std::span<std::uint8_t> chunk;  ///< Empty: this way does not pay or does not fit.
  bool memory_out = false;
  std::size_t n_patches = 0;
};

Attempt out_of_memory() { return {{}, true}; }

/// The ratio preset encodes with a second candidate whose estimate is within this factor.
constexpr double kSecondWithin = 1.03;
/// Bits a value below which the ratio preset tries zstd on everything.
constexpr double kZstdBelow = 0.25;
/// A quantum that so many values do not keep to was seen by mistake.
constexpr std::size_t kQuantumPatchesPart = 32;

/// The other presets compare with exact coding what takes more than this part of the values' bytes:
/// of all, or, where a fill value was found, of the others.
constexpr double kMostExact = 0.5;
constexpr double kMostExactPresent = 0.33;

/// Everything that the ways to encode share.
struct Work {
  const ChunkType& type;
  const Settings& settings;
  std::span<const std::byte> values;
  std::size_t n_values;
  ChunkHead head;
  Workspace& workspace;
  BookHistograms* counted;  ///< Null: nobody asks.
  double most_exact = kMostExact;
};

SectionChoice sections_for(const Work& work, double bits_per_value) {
  SectionChoice choice;
  choice.book = work.type.book;
  choice.counted = work.counted;
  choice.zstd_level = 1;
  switch (work.settings.lossless_stage) {
    case Choice::off: choice.zstd = ZstdUse::never; break;
    case Choice::on: choice.zstd = ZstdUse::always; break;
    case Choice::automatic:
      choice.zstd = work.settings.preset == Preset::fast ? ZstdUse::never
                    : work.settings.preset == Preset::ratio && bits_per_value < kZstdBelow
                        ? ZstdUse::always
                        : ZstdUse::promising;
      break;
  }
  return choice;
}

/// The head of a chunk whose predictor sees it under extents of its own.
ChunkHead head_of(const Work& work, Method method, const Extents& extents) {
  ChunkHead head = work.head;
  head.method = method;
  head.extents = extents;
  return head;
}

/// The lattice with the values' own step, if they have one.
template <class T>
Lattice<T> lattice_with_step(Lattice<T> lattice, double step) {
  if (step != 0) {
    lattice.step = static_cast<T>(step);
    lattice.inverse_step = T(1) / lattice.step;
  }
  return lattice;
}

/// A chunk of predicted codes and patches into the trial area.
template <class T>
Attempt encode_lattice(Work& work, const Lattice<T>& lattice, const T* fill,
                       const Prediction& prediction) {
  Workspace& workspace = work.workspace;
  LatticeJob<T> job;
  job.values = reinterpret_cast<const T*>(work.values.data());
  job.extents = prediction.extents;
  job.lattice = lattice_with_step(lattice, prediction.step);
  job.fill = fill;
  job.prediction = prediction;
  job.form = work.settings.preset == Preset::fast ? CodeForm::packed : CodeForm::grouped;
  job.sections = sections_for(work, job.prediction.bits_per_value);

  auto* bits = workspace.area<std::uint64_t>(Slot::patch_bits, PatchMap::words_of(work.n_values));
  OutgoingCodes codes;
  if (bits == nullptr || !codes.prepare(work.n_values, job.form, workspace)) {
    return out_of_memory();
  }
  PatchMap patches(bits, work.n_values);
  if (!predict_all(job, codes, patches, workspace)) return out_of_memory();
  const std::size_t room =
      kHeadBytesMax + codes.finish() + patches_bytes_max(work.n_values, patches.count(), sizeof(T));
  auto* trial = workspace.area<std::uint8_t>(Slot::trial, room + kSlack);
  if (trial == nullptr) return out_of_memory();
  ChunkWriter out({trial, room});
  write_head(head_of(work, Method::lattice, job.extents), out);
  const auto* raw = reinterpret_cast<const BitsOf<T>*>(work.values.data());
  if (!write_lattice(job, codes, out, workspace) ||
      !write_patches(raw, patches, {job.sections.zstd, 1, nullptr}, out, workspace)) {
    return out_of_memory();
  }
  return {{trial, out.n_written()}, false, patches.count()};
}

/// The transformed values as an ordinary field, signs, and patches of the original values.
template <class T, class Y>
Attempt encode_pointwise(Work& work, const PointwisePlan& plan, const T* fill) {
  Workspace& workspace = work.workspace;
  const std::size_t n = work.n_values;
  const auto* values = reinterpret_cast<const T*>(work.values.data());
  auto* y = workspace.area<Y>(Slot::transform_values, 2 * n + kSlack);
  auto* signs = workspace.area<std::uint8_t>(Slot::signs, pointwise_sign_bytes(n) + kSlack);
  auto* bits = workspace.area<std::uint64_t>(Slot::patch_bits, PatchMap::words_of(n));
  if (y == nullptr || signs == nullptr || bits == nullptr) return out_of_memory();
  PatchMap patches(bits, n);
  pointwise_forward(values, n, plan, fill, y, signs, patches, workspace.isa());

  const Sampled sampled =
      sample_chunk<Y>(y, work.head.extents, nullptr, plan.y_bound, work.settings, workspace.isa());
  const std::optional<Lattice<Y>> lattice = make_lattice<Y>(plan.y_bound, sampled.offset);
  if (!lattice) return {};
  Y found{};
  LatticeJob<Y> job;
  job.values = y;
  job.fill = sampled.fill_of<Y>(nullptr, found);
  job.extents = sampled.best().extents;
  job.lattice = lattice_with_step(*lattice, sampled.best().step);
  job.prediction = sampled.best();
  job.form = work.settings.preset == Preset::fast ? CodeForm::packed : CodeForm::grouped;
  job.sections = sections_for(work, job.prediction.bits_per_value);
  OutgoingCodes codes;
  if (!codes.prepare(n, job.form, workspace) || !predict_all(job, codes, patches, workspace)) {
    return out_of_memory();
  }
  // Every value could still become a patch in the check.
  const std::size_t room = kHeadBytesMax + codes.finish() + section_bytes_max(n / 8 + 1) +
                           patches_bytes_max(n, n, sizeof(T));
  auto* trial = workspace.area<std::uint8_t>(Slot::trial, room + kSlack);
  if (trial == nullptr) return out_of_memory();
  ChunkWriter out({trial, room});
  write_head(head_of(work, Method::pointwise, job.extents), out);
  out.number(static_cast<std::uint8_t>(plan.work));
  const std::size_t lattice_at = out.n_written();
  if (!write_lattice(job, codes, out, workspace)) return out_of_memory();

  ChunkReader in({trial + lattice_at, out.n_written() - lattice_at});
  Y* decoded = y + n;
  const DecodeFailure failure =
      read_lattice<Y>(in, job.extents, work.type.book, decoded, workspace);
  if (failure != DecodeFailure::none) return out_of_memory();
  static_cast<void>(
      pointwise_check(values, decoded, signs, n, work.type.bound, patches, workspace.isa()));
  const SectionPlan sections{job.sections.zstd, 1, nullptr};
  if (!add_section({signs, pointwise_sign_bytes(n)}, sections, out, workspace) ||
      !write_patches(reinterpret_cast<const BitsOf<T>*>(values), patches, sections, out,
                     workspace)) {
    return out_of_memory();
  }
  return {{trial, out.n_written()}, false};
}

bool all_equal(std::span<const std::byte> values, std::size_t element_bytes) {
  return values.size() <= element_bytes || std::memcmp(values.data(), values.data() + element_bytes,
                                                       values.size() - element_bytes) == 0;
}

/// Copy an attempt to the caller's buffer, sealed.
std::size_t deliver(std::span<const std::uint8_t> chunk, std::span<std::uint8_t> out) {
  std::memcpy(out.data(), chunk.data(), chunk.size());
  seal(out.first(chunk.size()));
  return chunk.size();
}

std::size_t deliver_constant(Work& work, std::span<std::uint8_t> out) {
  ChunkWriter writer(out);
  work.head.method = Method::constant;
  write_head(work.head, writer);
  writer.bytes(work.values.data(), dtype_bytes(work.type.dtype));
  seal(out.first(writer.n_written()));
  return writer.n_written();
}

std::size_t deliver_stored(Work& work, std::span<std::uint8_t> out) {
  ChunkWriter writer(out);
  work.head.method = Method::stored;
  write_head(work.head, writer);
  writer.bytes(work.values.data(), work.values.size());
  seal(out.first(writer.n_written()));
  return writer.n_written();
}

Result<std::size_t> memory_failure() {
  return Status(Code::out_of_memory, "trz: no memory for the working areas of a chunk");
}

/// The smaller of a lossless encoding and the values as they are.
Result<std::size_t> encode_exactly(Work& work, std::span<std::uint8_t> out) {
  if (all_equal(work.values, dtype_bytes(work.type.dtype))) return deliver_constant(work, out);
  work.head.method = Method::exact;
  const ExactAttempt attempt =
      encode_exact_chunk(work.head, work.values, work.settings, work.type.book, work.workspace);
  if (attempt.memory_out) return memory_failure();
  if (attempt.chunk.empty() || attempt.chunk.size() >= work.values.size()) {
    return deliver_stored(work, out);
  }
  return deliver(attempt.chunk, out);
}

/// A lattice chunk of `delivered` bytes in `out`, or none if it is 0, against exact coding.
Result<std::size_t> finish_best(Work& work, std::size_t delivered, std::span<std::uint8_t> out) {
  if (delivered == 0) return encode_exactly(work, out);
  // Repeated values may make an exact coding the smaller one: seldom where the ratio is two and
  // more, but by far then (a map of materials), so the ratio preset always asks.
  std::size_t to_beat = delivered;
  if (work.settings.preset != Preset::ratio) {
    const double limit = work.most_exact * static_cast<double>(work.values.size());
    if (static_cast<double>(delivered) < limit ||
        estimate_exact_bytes(work.head, work.values, work.workspace) >= delivered) {
      return delivered;
    }
    to_beat = SIZE_MAX;  // The estimate has decided.
  }
  work.head.method = Method::exact;
  const ExactAttempt exact = encode_exact_chunk(work.head, work.values, work.settings,
                                                work.type.book, work.workspace, to_beat);
  if (exact.memory_out) return memory_failure();
  if (!exact.chunk.empty() && exact.chunk.size() < delivered) return deliver(exact.chunk, out);
  return delivered;
}

Result<std::size_t> deliver_best(Work& work, const Attempt& attempt, std::span<std::uint8_t> out) {
  if (attempt.memory_out) return memory_failure();
  const std::size_t n_bytes = attempt.chunk.size();
  const bool pays = n_bytes != 0 && n_bytes < work.values.size();
  return finish_best(work, pays ? deliver(attempt.chunk, out) : 0, out);
}

/// A prediction of another kind than the first that may turn out better; null if none is near.
const Prediction* second_of(const Sampled& sampled) {
  const Prediction& first = sampled.best();
  for (std::size_t k = 1; k < sampled.n_predictions; ++k) {
    const Prediction& p = sampled.predictions[k];
    if (p.bits_per_value > kSecondWithin * first.bits_per_value + 0.05) break;
    const bool other_kind =
        p.interpolated != first.interpolated || p.step != first.step || p.order != first.order;
    const bool other_axis = p.interpolated && p.plan.last_axis != first.plan.last_axis;
    if (other_kind || other_axis) return &p;
  }
  return nullptr;
}

/// Encode with the prediction that the sample puts first; for the ratio preset with a second one.
template <class T>
Result<std::size_t> encode_by_sample(Work& work, const Sampled& sampled, const Lattice<T>& lattice,
                                     const T* fill, std::span<std::uint8_t> out) {
  const Prediction* second = work.settings.preset == Preset::ratio ? second_of(sampled) : nullptr;
  const Prediction* next = &sampled.best();
  std::size_t delivered = 0;
  while (next != nullptr) {
    const Prediction& prediction = *next;
    const Attempt attempt = encode_lattice<T>(work, lattice, fill, prediction);
    if (attempt.memory_out) return memory_failure();
    const std::size_t to_beat = delivered != 0 ? delivered : work.values.size();
    if (attempt.chunk.size() < to_beat) delivered = deliver(attempt.chunk, out);
    next = second;
    second = nullptr;
    if (prediction.step != 0 && attempt.n_patches > work.n_values / kQuantumPatchesPart) {
      // The sample was mistaken about the quantum.
      const auto* end = sampled.predictions.data() + sampled.n_predictions;
      next = std::find_if(sampled.predictions.data(), end,
                          [](const Prediction& p) { return p.step == 0; });
      if (next == end) next = nullptr;
    }
  }
  return finish_best(work, delivered, out);
}

template <class T>
Result<std::size_t> encode_floats(Work& work, std::span<std::uint8_t> out) {
  const auto* values = reinterpret_cast<const T*>(work.values.data());
  T fill_value{};
  const T* fill = nullptr;
  if (work.type.fill_value && !std::isnan(*work.type.fill_value)) {
    fill_value = static_cast<T>(*work.type.fill_value);
    fill = &fill_value;
  }
  if (work.type.kind == BoundKind::pointwise) {
    const std::optional<PointwisePlan> plan =
        PointwisePlan::for_bound(work.type.dtype, work.type.bound);
    if (!plan || all_equal(work.values, sizeof(T))) return encode_exactly(work, out);
    Attempt attempt;
    if constexpr (sizeof(T) == 4) {
      attempt = plan->work == DType::f32 ? encode_pointwise<float, float>(work, *plan, fill)
                                         : encode_pointwise<float, double>(work, *plan, fill);
    } else {
      attempt = encode_pointwise<double, double>(work, *plan, fill);
    }
    return deliver_best(work, attempt, out);
  }
  const Sampled sampled = sample_chunk<T>(values, work.head.extents, fill, work.type.bound,
                                          work.settings, work.workspace.isa());
  if (sampled.all_equal && all_equal(work.values, sizeof(T))) return deliver_constant(work, out);
  const std::optional<Lattice<T>> lattice = make_lattice<T>(work.type.bound, sampled.offset);
  const bool hopeless = !lattice || sampled.coarse_share > 0.25;
  if (hopeless) return encode_exactly(work, out);
  T found{};
  if (sampled.has_fill) work.most_exact = kMostExactPresent * (1 - sampled.special_share);
  return encode_by_sample(work, sampled, *lattice, sampled.fill_of(fill, found), out);
}

Status check_arguments(const ChunkType& type, const Settings& settings,
                       std::span<const std::byte> values, std::span<std::byte> out) {
  const std::uint64_t n_values = n_elements(type.shape);
  if (n_values > values.size() || values.size() != n_values * dtype_bytes(type.dtype)) {
    return {Code::invalid_argument, "trz: the values do not fill a chunk of this shape"};
  }
  if (out.size() < encoded_bytes_max(values.size())) {
    return {Code::invalid_argument, "trz: the output buffer is smaller than encoded_bytes_max"};
  }
  if (std::isnan(type.bound) || type.bound < 0) {
    return {Code::invalid_argument, "trz: the error bound is negative or NaN"};
  }
  if (type.kind == BoundKind::pointwise && !is_floating(type.dtype)) {
    return {Code::unsupported, "trz: a pointwise bound needs floating-point values"};
  }
  if (settings.dimensions < 0 || settings.dimensions > 4 || settings.last_axis < -1 ||
      settings.last_axis > 3) {
    return {Code::invalid_argument, "trz: dimensions must be 0..4 and last_axis -1..3"};
  }
  return {};
}

}  // namespace

std::size_t encoded_bytes_max(std::size_t n_bytes) { return n_bytes + kHeadBytesMax; }

std::size_t working_bytes_max(std::size_t n_bytes, BoundKind kind) {
  // Measured: up to 2 n_bytes; pointwise keeps two copies of the transformed values, in f64 for f32
  // under tight bounds: 6.6.
  const std::size_t n_copies = kind == BoundKind::pointwise ? 7 : 3;
  return n_copies * n_bytes + (std::size_t{1} << 20);
}

Result<std::size_t> encode(const ChunkType& type, const Settings& settings,
                           std::span<const std::byte> values, std::span<std::byte> out_bytes,
                           Workspace& workspace, BookHistograms* counted) {
  const FloatEnvironment environment;  // First: the bound may be denormal, and traps be on.
  TAILRACE_TRY(check_arguments(type, settings, values, out_bytes));
  const auto n_values = static_cast<std::size_t>(n_elements(type.shape));
  const std::span<std::uint8_t> out(reinterpret_cast<std::uint8_t*>(out_bytes.data()),
                                    out_bytes.size());
  Work work{type, settings, values, n_values, {}, workspace, counted};
  work.head.dtype = type.dtype;
  work.head.n_values = n_values;
  work.head.extents =
      n_values == 0 ? Extents{1, 1, 1, 1} : extents_of(type.shape, settings.dimensions);
  if (n_values < 2) return deliver_stored(work, out);
  if (!is_floating(type.dtype) || type.kind == BoundKind::exact || !(type.bound > 0)) {
    return encode_exactly(work, out);
  }
  return type.dtype == DType::f32 ? encode_floats<float>(work, out)
                                  : encode_floats<double>(work, out);
}

}  // namespace tailrace::trz
