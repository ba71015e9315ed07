// Encoding a chunk: from its sample to the smallest of the forms that are worth trying.
//
// encode() reads the bound (exact, absolute, pointwise), takes a sample (constant? does a lattice
// fit? which predictor?), codes the values, and compares the result with the raw values: a chunk
// never grows by more than its head.

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "trz/base/set_number.hpp"
#include "trz/chunk_header.hpp"
#include "trz/encode_work.hpp"
#include "trz/entropy/patches.hpp"
#include "trz/exact/decimals.hpp"
#include "trz/exact/exact.hpp"
#include "trz/predict/lattice_coding.hpp"
#include "trz/predict/pointwise.hpp"
#include "trz/trz.hpp"
#include "trz/value_guards.hpp"

namespace tailrace::trz {
namespace {

/// The ratio preset also encodes a second candidate whose estimate is within this factor.
constexpr double kSecondWithin = 1.03;
/// If more than 1/32 of the values do not fit the quantum, the sample detected it wrongly.
constexpr std::size_t kQuantumPatchesPart = 32;

/// f32 lattices have no codes for a found fill value that is at least this many steps away: a
/// trial without the fill value cannot succeed.
constexpr double kFillStepsSure = 0x1p22;

/// Decimals whose numbers do not repeat are smaller than other lossless forms if the quick estimate
/// of these is above this multiple of their size. The thorough estimate runs zstd over 2 MB.
constexpr std::size_t kExactFar = 2;
/// Bytes of a chunk from which on the quick estimate reads a small part of it.
constexpr std::size_t kQuickEstimatePays = std::size_t{1} << 18;

/// Bits per value below which the ratio preset tries zstd on every section.
constexpr double kZstdBelow = 0.25;

ZstdUse automatic_zstd(Preset preset, double bits_per_value) {
  if (preset == Preset::fast) return ZstdUse::never;
  if (!tries_more(preset)) return ZstdUse::promising;
  return bits_per_value < kZstdBelow ? ZstdUse::always : ZstdUse::searched;
}

}  // namespace

SectionChoice sections_for(const Work& work, double bits_per_value) {
  SectionChoice choice;
  choice.book = work.type.book;
  choice.counted = work.counted;
  choice.zstd_level = 1;
  switch (work.settings.lossless_stage) {
    case Choice::off: choice.zstd = ZstdUse::never; break;
    case Choice::on: choice.zstd = ZstdUse::always; break;
    case Choice::automatic:
      choice.zstd = automatic_zstd(work.settings.preset, bits_per_value);
      break;
  }
  return choice;
}

namespace {

/// Lattice with the values' quantum as its step, if they have one.
template <class T>
Lattice<T> lattice_with_step(Lattice<T> lattice, double step) {
  if (step != 0) {
    lattice.step = static_cast<T>(step);
    lattice.inverse_step = T(1) / lattice.step;
  }
  return lattice;
}

/// Write a chunk of predicted codes and patches to the trial area.
/// @param inner  the inner chunk that supplies the job's coarse values; empty: none.
template <class T>
Attempt encode_job(Work& work, LatticeJob<T> job, std::span<const std::uint8_t> inner = {}) {
  Workspace& workspace = work.workspace;
  job.form = work.settings.preset == Preset::fast ? CodeForm::packed : CodeForm::grouped;
  job.sections = sections_for(work, job.prediction.bits_per_value);
  const std::size_t n = values_in(job.extents);
  auto* bits = workspace.area<std::uint64_t>(Slot::patch_bits, PatchMap::words_of(n));
  OutgoingCodes codes;
  if (bits == nullptr || !codes.prepare(codes_of(job), job.form, workspace)) {
    return out_of_memory();
  }
  PatchMap patches(bits, n);
  if (!predict_all(job, codes, patches, workspace)) return out_of_memory();
  const std::size_t n_patches = patches.count();
  const std::size_t n_patches_max = work.guards != nullptr ? n : n_patches;
  const std::size_t room = 2 * kHeadBytesMax + inner.size() + codes.finish() +
                           patches_bytes_max(n, n_patches_max, sizeof(T));
  auto* trial = workspace.area<std::uint8_t>(Slot::trial, room + kSlack);
  if (trial == nullptr) return out_of_memory();
  ChunkWriter out({trial, room});
  write_head(head_of(work, inner.empty() ? Method::lattice : Method::nested, job.extents), out);
  if (!inner.empty()) {
    out.varint(inner.size());
    out.bytes(inner.data(), inner.size());
  }
  const std::size_t lattice_at = out.n_written();
  if (!write_lattice(job, codes, out, workspace)) return out_of_memory();
  const T* patched = job.values;
  if (work.guards != nullptr) {
    ChunkReader in({trial + lattice_at, out.n_written() - lattice_at});
    auto* decoded = workspace.area<T>(Slot::transform_values, n + kSlack);
    if (decoded == nullptr || read_lattice<T>(in, job.extents, work.type.book, decoded, workspace,
                                              job.coarse) != DecodeFailure::none) {
      return out_of_memory();
    }
    // The inner chunk has patched the coarse values already.
    if (job.coarse != nullptr) put_patched_coarse(job.coarse, job.extents, decoded);
    patched = keep_guards(work, job.values, job.fill, decoded, patches);
  }
  const auto* raw = reinterpret_cast<const BitsOf<T>*>(patched);
  if (!write_patches(raw, patches, {job.sections.zstd, 1, nullptr}, out, workspace)) {
    return out_of_memory();
  }
  return {{trial, out.n_written()}, false, n_patches};
}

/// Job for all of the chunk's values with this prediction.
template <class T>
LatticeJob<T> whole_job(const Work& work, const Lattice<T>& lattice, const T* fill,
                        const Prediction& prediction) {
  LatticeJob<T> job;
  job.values = reinterpret_cast<const T*>(work.values.data());
  job.extents = prediction.extents;
  job.lattice = lattice_with_step(lattice, prediction.step);
  job.fill = fill;
  job.prediction = prediction;
  return job;
}

template <class T>
Attempt encode_lattice(Work& work, const Lattice<T>& lattice, const T* fill,
                       const Prediction& prediction) {
  return encode_job(work, whole_job(work, lattice, fill, prediction));
}

// --- Nested: a complete chunk of every second value, and the values between.

/// Factor by which a chunk may grow to include coarse views or bit planes.
constexpr double kViewsWithin = 1.02;

/// Adapt the plan to halved() extents: axes of two values disappear.
void keep_axes(const Extents& extents, InterpolationPlan& plan) {
  const InterpolationPlan finer = plan;
  if (plan.last_axis != kJoint) plan.last_axis = 0;
  std::size_t n_kept = 0;
  for (std::size_t axis = 0; axis < finer.spline.size(); ++axis) {  // x first
    if (extents[extents.size() - 1 - axis] <= 2) continue;
    plan.spline[n_kept] = finer.spline[axis];
    plan.axis_weight[n_kept] = finer.axis_weight[axis];
    if (finer.last_axis == static_cast<int>(axis)) plan.last_axis = static_cast<int>(n_kept);
    ++n_kept;
  }
}

/// Job of the next coarser chunk, coded like that level of the pyramid. `values` are every second
/// one of the finer job's.
template <class T>
LatticeJob<T> coarser_job(const LatticeJob<T>& job, const T* values) {
  LatticeJob<T> coarser = job;
  coarser.values = values;
  coarser.extents = halved(job.extents);
  InterpolationPlan& plan = coarser.prediction.plan;
  keep_axes(folded_to_three(job.extents), plan);
  const T step = level_step(job.lattice.step, plan, 1);
  const double divisor = static_cast<double>(job.lattice.step) / static_cast<double>(step);
  coarser.lattice.step = step;
  coarser.lattice.inverse_step = T(1) / step;
  coarser.lattice.bound = static_cast<T>(static_cast<double>(job.lattice.bound) / divisor);
  plan.beta_16 = static_cast<std::uint8_t>(std::max(16.0, plan.beta_16 / divisor));
  return coarser;
}

/// Like encode_lattice(), with coarse views inside. Starts from the coarsest view; each finer one
/// is predicted from the decoded values of the previous one.
template <class T>
Attempt encode_nested(Work& work, const Lattice<T>& lattice, const T* fill,
                      const Prediction& prediction) {
  Workspace& workspace = work.workspace;
  std::array<LatticeJob<T>, kCoarseViewsMax + 1> jobs;
  jobs[0] = whole_job(work, lattice, fill, prediction);
  const int views_max = work.settings.coarse_views;
  const std::size_t n_inner = inner_area_values(prediction.extents, views_max);
  T* area = workspace.area<T>(Slot::nested, n_inner + n_inner / 2 + 1);
  if (area == nullptr) return out_of_memory();
  T* originals = area + n_inner;
  std::size_t n_views = 0;
  for (; n_views < static_cast<std::size_t>(views_max) && can_nest(jobs[n_views].extents);
       ++n_views) {
    const LatticeJob<T>& finer = jobs[n_views];
    const Extents e = folded_to_three(finer.extents);
    subsample(finer.values, LevelExtents{e[1], e[2], e[3]}, originals);
    jobs[n_views + 1] = coarser_job(finer, originals);
    originals += values_in(jobs[n_views + 1].extents);
  }
  std::span<std::uint8_t> inner;
  for (std::size_t view = n_views; view > 0; --view) {
    const Attempt attempt = encode_job(work, jobs[view], inner);
    if (attempt.memory_out) return attempt;
    auto* kept = workspace.area<std::uint8_t>(Slot::nested_bytes, attempt.chunk.size() + kSlack);
    if (kept == nullptr) return out_of_memory();
    std::copy(attempt.chunk.begin(), attempt.chunk.end(), kept);
    inner = {kept, attempt.chunk.size()};
    seal(inner);
    const DecodeFailure failure =
        read_inner<T>(inner, jobs[view].extents, static_cast<int>(n_views - view), work.type.book,
                      area, workspace);
    TAILRACE_CHECK(failure != DecodeFailure::corrupt);
    if (failure != DecodeFailure::none) return out_of_memory();
    jobs[view - 1].coarse = area;
  }
  return n_views == 0 ? Attempt{} : encode_job(work, jobs[0], inner);
}

/// Code by fitted interpolation and patches, into the trial area. Coarse levels get smaller steps
/// as in `like`, the best interpolation of the sample, or null.
template <class T>
Attempt encode_fitted(Work& work, const Lattice<T>& lattice, const T* fill, const Extents& extents,
                      bool planar, const Prediction* like) {
  Workspace& workspace = work.workspace;
  const std::size_t n = work.n_values;
  const auto* values = reinterpret_cast<const T*>(work.values.data());
  LevelSteps steps;
  if (like != nullptr) steps = {like->plan.alpha_16, like->plan.beta_16};
  auto* bits = workspace.area<std::uint64_t>(Slot::patch_bits, PatchMap::words_of(n));
  const std::size_t room = kHeadBytesMax + fitted_bytes_max(n) + patches_bytes_max(n, n, sizeof(T));
  auto* trial = workspace.area<std::uint8_t>(Slot::trial, room + kSlack);
  if (bits == nullptr || trial == nullptr) return out_of_memory();
  PatchMap patches(bits, n);
  ChunkWriter out({trial, room});
  write_head(head_of(work, Method::fitted, extents), out);
  const std::size_t fitted_at = out.n_written();
  if (!write_fitted(values, extents, planar, steps, lattice, fill, patches, out, workspace)) {
    return out_of_memory();
  }
  const T* patched = values;
  if (work.guards != nullptr) {
    ChunkReader in({trial + fitted_at, out.n_written() - fitted_at});
    auto* decoded = workspace.area<T>(Slot::transform_values, n + kSlack);
    if (decoded == nullptr ||
        read_fitted<T>(in, extents, decoded, workspace) != DecodeFailure::none) {
      return out_of_memory();
    }
    patched = keep_guards(work, values, fill, decoded, patches);
  }
  if (!write_patches(reinterpret_cast<const BitsOf<T>*>(patched), patches,
                     {sections_for(work, 1).zstd, 1, nullptr}, out, workspace)) {
    return out_of_memory();
  }
  return {{trial, out.n_written()}, false, patches.count()};
}

/// Code the transformed values like an ordinary field, followed by signs and patches of the
/// original values.
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

  SampledValues<Y> chunk;
  chunk.values = y;
  chunk.find_fill = false;  // Values far apart have logarithms close together.
  const Sampled sampled =
      sample_values(chunk, work.head.extents, plan.y_bound, work.settings, work.workspace.isa());
  const std::optional<Lattice<Y>> lattice = make_lattice<Y>(plan.y_bound, sampled.offset);
  if (!lattice) return {};
  LatticeJob<Y> job;
  job.values = y;
  job.extents = sampled.best().extents;
  job.lattice = lattice_with_step(*lattice, sampled.best().step);
  job.prediction = sampled.best();
  job.form = work.settings.preset == Preset::fast ? CodeForm::packed : CodeForm::grouped;
  job.sections = sections_for(work, job.prediction.bits_per_value);
  OutgoingCodes codes;
  if (!codes.prepare(n, job.form, workspace) || !predict_all(job, codes, patches, workspace)) {
    return out_of_memory();
  }
  // Every value may still become a patch in the check.
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
  const T* patched = values;
  if (work.guards != nullptr) {
    auto* decoded_values = workspace.area<T>(Slot::sample, n + kSlack);
    if (decoded_values == nullptr) return out_of_memory();
    pointwise_inverse<T, Y>(decoded, signs, n, decoded_values, workspace.isa());
    patched = keep_guards(work, values, fill, decoded_values, patches);
  }
  const SectionPlan sections{job.sections.zstd, 1, nullptr};
  if (!add_section({signs, pointwise_sign_bytes(n)}, sections, out, workspace) ||
      !write_patches(reinterpret_cast<const BitsOf<T>*>(patched), patches, sections, out,
                     workspace)) {
    return out_of_memory();
  }
  return {{trial, out.n_written()}, false};
}

bool all_equal(std::span<const std::byte> values, std::size_t element_bytes) {
  return values.size() <= element_bytes || std::memcmp(values.data(), values.data() + element_bytes,
                                                       values.size() - element_bytes) == 0;
}

/// Copy an attempt to the caller's buffer and seal it.
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

Result<std::size_t> encode_work(Work& work, std::span<std::uint8_t> out);

/// Try decimals, if the chunk has no bound.
DecimalAttempt attempt_decimals(Work& work) {
  if (!tries_decimals(work.type, work.settings.preset)) return {};
  Settings settings = work.settings;
  settings.coarse_views = 0;
  settings.bit_planes = 0;
  const auto inner = [&](DType dtype, std::span<const std::byte> values, std::span<std::byte> out) {
    ChunkType type;
    type.dtype = dtype;
    type.kind = is_floating(dtype) ? BoundKind::absolute : BoundKind::exact;
    type.bound = is_floating(dtype) ? kWithinHalf : 0;
    Work within{type, settings, values, work.n_values, work.head, work.workspace, nullptr};
    within.head.dtype = dtype;
    return encode_work(within, {reinterpret_cast<std::uint8_t*>(out.data()), out.size()});
  };
  return encode_decimal_chunk(work.head, work.values, settings, inner, work.workspace);
}

/// Deliver the smallest of decimals, another lossless encoding and the raw values.
Result<std::size_t> encode_exactly(Work& work, std::span<std::uint8_t> out) {
  if (all_equal(work.values, dtype_bytes(work.type.dtype))) return deliver_constant(work, out);
  std::size_t delivered = 0;
  const DecimalAttempt decimals = attempt_decimals(work);
  if (decimals.memory_out) return memory_failure();
  if (!decimals.chunk.empty() && decimals.chunk.size() < work.values.size()) {
    delivered = deliver(decimals.chunk, out);
  }
  work.head.method = Method::exact;
  // zstd may find repeats in the values that the integers' predictors hide from it.
  const bool zstd_finds = decimals.repeats && work.settings.lossless_stage != Choice::off;
  const bool decides_early = delivered != 0 && !zstd_finds;
  if (decides_early && tries_more(work.settings.preset)) {
    const auto quickly_far = [&] {
      return estimate_exact_bytes(work.head, work.values, work.settings, work.workspace) >
             kExactFar * delivered;
    };
    if ((work.values.size() >= kQuickEstimatePays && quickly_far()) ||
        !exact_may_be_below(work.head, work.values, work.settings, work.workspace, delivered)) {
      return delivered;
    }
  }
  const ExactAttempt exact =
      encode_exact_chunk(work.head, work.values, work.settings, work.type.book, work.workspace,
                         decides_early ? delivered : SIZE_MAX);
  if (exact.memory_out) return memory_failure();
  const std::size_t to_beat = delivered != 0 ? delivered : work.values.size();
  if (!exact.chunk.empty() && exact.chunk.size() < to_beat) return deliver(exact.chunk, out);
  return delivered != 0 ? delivered : deliver_stored(work, out);
}

/// Compare a lattice chunk of `delivered` bytes in `out` (0: none) with exact coding.
Result<std::size_t> finish_best(Work& work, std::size_t delivered, std::span<std::uint8_t> out) {
  if (delivered == 0) return encode_exactly(work, out);
  // Repeated values can make exact coding smaller. At ratios above two this is rare but then a
  // large gain (a map of materials), so the ratio preset always checks.
  std::size_t to_beat = delivered;
  if (!tries_more(work.settings.preset)) {
    const double limit = work.most_exact * static_cast<double>(work.values.size());
    if (static_cast<double>(delivered) < limit) return delivered;
    if (work.most_exact == kMostExact) {
      const std::size_t estimate =
          estimate_exact_bytes(work.head, work.values, work.settings, work.workspace);
      if (estimate >= delivered) return delivered;
      to_beat = SIZE_MAX;  // The estimate has decided.
    }
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

/// Best prediction of another kind than the first that may turn out smaller; null if none is close.
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

/// Encode without the found fill value. Predicting its edges may be cheaper than storing its
/// positions: if the edges repeat from row to row, or if bounds are loose.
template <class T>
Attempt encode_without_fill(Work& work) {
  SampledValues<T> chunk;
  chunk.values = reinterpret_cast<const T*>(work.values.data());
  chunk.find_fill = false;
  const Sampled sampled =
      sample_values(chunk, work.head.extents, work.type.bound, work.settings, work.workspace.isa());
  const std::optional<Lattice<T>> lattice = make_lattice<T>(work.type.bound, sampled.offset);
  if (!lattice || sampled.coarse_share > 0.25) return {};
  work.counted = nullptr;  // A book counts only the most common form of chunks.
  return encode_lattice<T>(work, *lattice, nullptr, sampled.best());
}

/// Forms of fitted interpolation that may beat the other predictions.
struct FittedForms {
  bool whole = true;
  bool planar = false;
};

/// The sample foresees that a form loses if it costs this multiple of the other form.
constexpr double kWholeClearly = 1.15;
constexpr double kPlanarClearly = 0.7;
/// Share of the foreseen size of interpolation below which an encoding found what no interpolation
/// finds: repeats, or few words.
constexpr double kOutOfReach = 0.6;
/// Values are noise if no prediction costs at most this multiple of the best prediction.
constexpr double kNoiseWithin = 1.02;

/// @param n_bytes  bytes of the smallest encoding so far.
FittedForms fitted_forms(const Work& work, const Sampled& sampled, const Prediction* like,
                         const Extents& extents, std::size_t n_bytes) {
  const Extents own = folded_to_three(work.head.extents);
  const Extents rows = {1, 1, own[1] * own[2], own[3]};
  double of_whole = std::numeric_limits<double>::infinity();
  double of_rows = of_whole;
  bool is_noise = false;
  for (std::size_t k = 0; k < sampled.n_predictions; ++k) {
    const Prediction& p = sampled.predictions[k];
    const double bits = p.bits_per_value;
    if (!p.interpolated) {
      is_noise |= p.order == 0 && bits <= kNoiseWithin * sampled.best().bits_per_value;
      continue;
    }
    if (folded_to_three(p.extents) == own) of_whole = std::min(of_whole, bits);
    if (p.extents == rows) of_rows = std::min(of_rows, bits);
  }
  const double bits = 8 * static_cast<double>(n_bytes) / static_cast<double>(work.n_values);
  if (is_noise || (like != nullptr && bits < kOutOfReach * like->bits_per_value)) {
    return {false, false};
  }
  // If the sample prefers all axes jointly, planes predict each other well.
  const bool joint =
      like != nullptr && like->plan.last_axis == kJoint && like->extents == work.head.extents;
  const bool has_planes = extents[1] > 1;
  if (joint || !has_planes || of_rows > kWholeClearly * of_whole) return {true, false};
  return {of_rows >= kPlanarClearly * of_whole, true};
}

/// Try to beat a chunk of `delivered` bytes in `out` (0: none) by fitted interpolation.
template <class T>
Result<std::size_t> improve_by_fit(Work& work, const Lattice<T>& lattice, const T* fill,
                                   const Sampled& sampled, std::size_t delivered,
                                   std::span<std::uint8_t> out) {
  const auto* end = sampled.predictions.data() + sampled.n_predictions;
  const auto* like = std::find_if(sampled.predictions.data(), end,
                                  [](const Prediction& p) { return p.interpolated; });
  if (like == end) like = nullptr;
  const std::optional<Extents> extents = fitted_extents(work.head.extents);
  if (!extents) return delivered;
  const FittedForms forms =
      fitted_forms(work, sampled, like, *extents, delivered != 0 ? delivered : work.values.size());
  for (const bool planar : {false, true}) {
    if (!(planar ? forms.planar : forms.whole)) continue;
    const std::size_t to_beat = delivered != 0 ? delivered : work.values.size();
    const Attempt attempt = encode_fitted<T>(work, lattice, fill, *extents, planar, like);
    if (attempt.memory_out) return memory_failure();
    if (attempt.chunk.size() < to_beat) delivered = deliver(attempt.chunk, out);
  }
  return delivered;
}

/// Encode with the sample's first prediction; from the ratio preset on also with a second one.
template <class T>
Result<std::size_t> encode_by_sample(Work& work, const Sampled& sampled, const Lattice<T>& lattice,
                                     const T* fill, std::span<std::uint8_t> out) {
  const Prediction* second = tries_more(work.settings.preset) ? second_of(sampled) : nullptr;
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
      // The sample detected the quantum wrongly.
      const auto* end = sampled.predictions.data() + sampled.n_predictions;
      next = std::find_if(sampled.predictions.data(), end,
                          [](const Prediction& p) { return p.step == 0; });
      if (next == end) next = nullptr;
    }
  }
  if (sampled.has_fill && sampled.fill_steps < kFillStepsSure) {
    const Attempt attempt = encode_without_fill<T>(work);
    if (attempt.memory_out) return memory_failure();
    const std::size_t to_beat = delivered != 0 ? delivered : work.values.size();
    if (!attempt.chunk.empty() && attempt.chunk.size() < to_beat) {
      delivered = deliver(attempt.chunk, out);
    }
  }
  if (tries_more(work.settings.preset) && work.settings.predictor == Predictor::automatic) {
    const std::size_t to_beat = delivered != 0 ? delivered : work.values.size();
    const Attempt attempt = encode_vocabulary<T>(work, lattice, fill, sampled.has_fill, to_beat);
    if (attempt.memory_out) return memory_failure();
    if (!attempt.chunk.empty() && attempt.chunk.size() < to_beat) {
      delivered = deliver(attempt.chunk, out);
    }
  }
  if (work.settings.preset == Preset::max && work.settings.predictor == Predictor::automatic) {
    const Result<std::size_t> fitted = improve_by_fit(work, lattice, fill, sampled, delivered, out);
    if (!fitted.ok()) return fitted;
    delivered = fitted.value();
  }
  return finish_best(work, delivered, out);
}

/// Best interpolation of the sample for the chunk's unfolded extents; null: none.
const Prediction* nestable(const Work& work, const Sampled& sampled) {
  const auto* end = sampled.predictions.data() + sampled.n_predictions;
  const auto* found = std::find_if(sampled.predictions.data(), end, [&](const Prediction& p) {
    return p.interpolated && folded_to_three(p.extents) == folded_to_three(work.head.extents);
  });
  return found == end ? nullptr : found;
}

/// Minimum bytes per view of a chunk that surely loses less than 2 % by its views. A chunk of this
/// size is not encoded without views for comparison.
constexpr std::size_t kViewsSureBytes = 25000;

template <class T>
Result<std::size_t> encode_with_views(Work& work, const Sampled& sampled, const Lattice<T>& lattice,
                                      const T* fill, std::span<std::uint8_t> out) {
  const Prediction* prediction = nestable(work, sampled);
  if (prediction == nullptr) return encode_by_sample(work, sampled, lattice, fill, out);
  const std::size_t sure_bytes =
      static_cast<std::size_t>(work.settings.coarse_views) * kViewsSureBytes;
  const double foreseen = prediction->bits_per_value * static_cast<double>(work.n_values) / 8;
  if (prediction == &sampled.best() && !tries_more(work.settings.preset) && !sampled.has_fill &&
      foreseen >= static_cast<double>(sure_bytes)) {
    const Attempt sure = encode_nested<T>(work, lattice, fill, *prediction);
    if (sure.memory_out || sure.chunk.size() >= sure_bytes) return deliver_best(work, sure, out);
  }
  const Result<std::size_t> plain = encode_by_sample(work, sampled, lattice, fill, out);
  if (!plain.ok()) return plain;
  work.counted = nullptr;
  const Attempt attempt = encode_nested<T>(work, lattice, fill, *prediction);
  if (attempt.memory_out) return memory_failure();
  const double most = kViewsWithin * static_cast<double>(*plain);
  const bool cheap = static_cast<double>(attempt.chunk.size()) <= most;
  if (attempt.chunk.empty() || !cheap || attempt.chunk.size() > out.size()) return plain;
  return deliver(attempt.chunk, out);
}

// --- Bit planes behind a coarser chunk.

/// Bits that a value needs in addition to its planes. With fewer, the coarser chunk's codes usually
/// cost over 2 % more than the planes save, in nearly all real fields.
constexpr double kBitsLeft = 1.5;

/// Encode the inner chunk in the smallest of all forms, at 2^bit_planes times the bound, and append
/// the planes.
/// @param fill  named or found: planes would change it.
template <class T>
Attempt attempt_refined(Work& work, const Lattice<T>& lattice, const T* fill,
                        BookHistograms* counted) {
  Workspace& workspace = work.workspace;
  const int n_planes = work.settings.bit_planes;
  if (!std::isfinite(lattice.bound * static_cast<T>(1 << n_planes))) return {};
  ChunkType type;  // Without guards: encode_refined() enforces them on the refined values.
  type.dtype = work.type.dtype;
  type.bound = std::ldexp(static_cast<double>(lattice.bound), n_planes);
  type.fill_value = fill != nullptr ? std::optional(static_cast<double>(*fill)) : std::nullopt;
  type.book = work.type.book;
  Settings settings = work.settings;
  settings.bit_planes = 0;
  const std::size_t room = encoded_bytes_max(work.values.size());
  auto* coarser = workspace.area<std::uint8_t>(Slot::nested_bytes, room + kSlack);
  if (coarser == nullptr) return out_of_memory();
  Work within{type, settings, work.values, work.n_values, work.head, workspace, counted};
  const Result<std::size_t> n_bytes = encode_work(within, {coarser, room});
  if (!n_bytes.ok()) return out_of_memory();
  return encode_refined(work, lattice, fill, {coarser, *n_bytes});
}

/// Encode with and without planes, and deliver planes if they cost at most 2 %, which is less than
/// the sample can predict. Skips planes that the sample rules out.
template <class T>
Result<std::size_t> encode_with_planes(Work& work, const Sampled& sampled,
                                       const Lattice<T>& lattice, const T* fill,
                                       std::span<std::uint8_t> out) {
  const Result<std::size_t> plain = encode_by_sample(work, sampled, lattice, fill, out);
  const double least_bits = work.settings.bit_planes + kBitsLeft;
  if (!plain.ok() || sampled.best().bits_per_value < least_bits) return plain;
  BookHistograms counted;
  if (work.counted != nullptr) counted = *work.counted;
  const Attempt attempt =
      attempt_refined(work, lattice, fill, work.counted != nullptr ? &counted : nullptr);
  if (attempt.memory_out) return memory_failure();
  const double most = kViewsWithin * static_cast<double>(*plain);
  const bool cheap = static_cast<double>(attempt.chunk.size()) <= most;
  if (attempt.chunk.empty() || !cheap || attempt.chunk.size() > out.size()) return plain;
  if (work.counted != nullptr) *work.counted = counted;
  return deliver(attempt.chunk, out);
}

template <class T>
Result<std::size_t> encode_floats(Work& work, std::span<std::uint8_t> out) {
  const auto* values = reinterpret_cast<const T*>(work.values.data());
  T fill_value{};
  const T* fill = nullptr;
  if (const double* const stated = set_number(work.type.fill_value); stated != nullptr) {
    fill_value = static_cast<T>(*stated);
    fill = &fill_value;
  }
  if (work.type.kind == BoundKind::pointwise) {
    work.guards = work.type.guards;
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
  if (work.type.guards != nullptr &&
      may_break(*work.type.guards, values, work.n_values, work.type.bound)) {
    work.guards = work.type.guards;
  }
  T found{};
  const T* absent = sampled.fill_of(fill, found);
  if (sampled.has_fill) work.most_exact = kMostExactPresent * (1 - sampled.special_share);
  if (work.settings.bit_planes > 0) {
    return encode_with_planes(work, sampled, *lattice, absent, out);
  }
  return work.settings.coarse_views == 0 ? encode_by_sample(work, sampled, *lattice, absent, out)
                                         : encode_with_views(work, sampled, *lattice, absent, out);
}

Result<std::size_t> encode_work(Work& work, std::span<std::uint8_t> out) {
  if (work.n_values < 2) return deliver_stored(work, out);
  const ChunkType& type = work.type;
  if (!is_floating(type.dtype) || type.kind == BoundKind::exact || !(type.bound > 0)) {
    return encode_exactly(work, out);
  }
  return type.dtype == DType::f32 ? encode_floats<float>(work, out)
                                  : encode_floats<double>(work, out);
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
  const bool by_region = type.guards != nullptr && !type.guards->tighter.empty();
  if (by_region && type.guards->tighter.of_value.size() != n_values) {
    return {Code::invalid_argument,
            "trz: the number of region bounds does not match the number of values"};
  }
  if (by_region && settings.coarse_views > 0 && type.kind == BoundKind::absolute) {
    return {Code::unsupported, "trz: region bounds and coarse views exclude each other"};
  }
  if (settings.dimensions < 0 || settings.dimensions > 4 || settings.last_axis < -1 ||
      settings.last_axis > 3 || settings.coarse_views < 0 ||
      settings.coarse_views > kCoarseViewsMax || settings.bit_planes < 0 ||
      settings.bit_planes > kBitPlanesMax) {
    return {Code::invalid_argument,
            "trz: dimensions must be 0..4, last_axis -1..3, coarse views 0..3 and bit planes 0..8"};
  }
  if (settings.coarse_views > 0 && settings.bit_planes > 0) {
    return {Code::invalid_argument, "trz: coarse views and bit planes exclude each other"};
  }
  return {};
}

}  // namespace

std::size_t encoded_bytes_max(std::size_t n_bytes) { return n_bytes + kHeadBytesMax; }

Result<std::size_t> encode(const ChunkType& type, const Settings& settings,
                           std::span<const std::byte> values, std::span<std::byte> out_bytes,
                           Workspace& workspace, BookHistograms* counted) {
  const FloatEnvironment environment;  // First: the bound may be denormal, and traps enabled.
  TAILRACE_TRY(check_arguments(type, settings, values, out_bytes));
  const auto n_values = static_cast<std::size_t>(n_elements(type.shape));
  const std::span<std::uint8_t> out(reinterpret_cast<std::uint8_t*>(out_bytes.data()),
                                    out_bytes.size());
  Work work{type, settings, values, n_values, {}, workspace, counted};
  work.head.dtype = type.dtype;
  work.head.n_values = n_values;
  work.head.extents =
      n_values == 0 ? Extents{1, 1, 1, 1} : extents_of(type.shape, settings.dimensions);
  return encode_work(work, out);
}

}  // namespace tailrace::trz
