// Exact coding: the decision. The cost of words is estimated from a sample. If values repeat or
// prediction hardly helps, zstd is tried on a part of the chunk.

#include "trz/exact/exact.hpp"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "trz/base/byte_shuffle.hpp"
#include "trz/entropy/code_sections.hpp"
#include "trz/entropy/patches.hpp"
#include "trz/exact/dictionary.hpp"
#include "trz/exact/exact_sample.hpp"
#include "trz/exact/modelled.hpp"
#include "trz/predict/lorenzo_pieces.hpp"

namespace tailrace::trz {

namespace {

constexpr std::size_t kScanValues = 2048;
constexpr double kWorthCoding = 0.99;       // A chunk that shrinks by less is stored.
constexpr double kRepeatsForZstd = 0.005;   // Share of repeats in a sample that suggests zstd,
constexpr double kRepeatsByDensity = 4096;  // plus this / R for values in a range of R integers.
constexpr double kHighRatio = 16;  // Ratio from which on bytes may have any runs and repeats.
constexpr double kGainOfPrediction = 0.9;  // Share of bits left by prediction; if more, try zstd.
constexpr double kClearlySmaller = 0.97;   // Share of bytes below which a slower form is chosen.
constexpr std::size_t kTrialParts = 8;
constexpr std::size_t kTrialBytesMin = std::size_t{1} << 15;
constexpr std::size_t kTrialBytesMax = std::size_t{1} << 16;
constexpr std::size_t kTrialShare = 16;  // A short trial takes 1/16 of the chunk, clamped.
/// Equal values may lie far apart. If values repeat, long stretches are therefore tried, unless the
/// short trial exceeds this multiple of the best size.
constexpr std::size_t kStretchBytes = std::size_t{1} << 21;
constexpr std::size_t kStretches = 4;
constexpr double kWithinReach = 1.4;
/// Limit of the short trial as a multiple of the size to beat. It is higher at high ratios, at
/// which a short trial finds few of the repeats.
constexpr double kWithinReachOfLossy = 1.5;
constexpr double kWithinReachAtHighRatio = 3;
constexpr double kHighRatioOfLossy = 8;
/// Ratio that exact coding of 32-bit or 64-bit values without repeats does not reach, except on
/// fields that are far smaller within a bound.
constexpr double kRatioWithoutRepeats = 2;
/// A chunk is encoded if its estimated size is within this multiple of the size to beat.
constexpr double kEstimateWithin = 1.2;
constexpr double kSectionsWithin = 2;  // Multiple to use if zstd may shrink the words' sections.
/// A form is not encoded if its estimate exceeds a modelled chunk by this factor and its ratio is
/// below the other one. At higher ratios zstd may shrink the sections far below the estimate.
constexpr double kSurelyLarger = 1.03;
constexpr std::size_t kSureBelowRatio = 2;
constexpr double kLowIsNoise = 31.6;  // Bits per low word (of 32) above which it is stored.

/// Scans all values for common properties; special values count as the typical value.
class Scanner {
 public:
  Scanner(const ExactValues& values, const ExactPlan& plan, std::uint64_t typical, Isa isa)
      : kernels_(exact_kernels(isa).of_dtype[static_cast<std::size_t>(values.dtype)]),
        integers_(exact_kernels(isa).of_dtype[static_cast<std::size_t>(DType::i64)]),
        data_(static_cast<const std::byte*>(values.data)),
        n_values_(values_in(values.extents)),
        element_bytes_(dtype_bytes(values.dtype)),
        plan_(plan),
        typical_(typical) {}

  WordRange range() {
    WordRange range;
    visit([&](const void* part, std::size_t n) {
      kernels_.scan(part, n, plan_.origin, range);
      return true;
    });
    return range;
  }

  /// True if every difference from the origin is a multiple of `factor`.
  /// @param range  the result of range().
  bool all_multiples(std::uint64_t factor, const WordRange& range) {
    const WordMap map = word_map(plan_.origin, factor);
    const auto divisor = static_cast<std::int64_t>(factor);
    if (divisor <= 0) return false;
    const std::int64_t least = range.least / divisor;
    const std::int64_t greatest = range.greatest / divisor;
    // If a difference is not a multiple, its quotient modulo 2^64 lies far outside the range,
    // since multiplication by an odd factor is a permutation.
    std::int64_t words[kScanValues];
    return visit([&](const void* part, std::size_t n) {
      WordRange quotients;
      kernels_.to_wide(part, n, map, words);
      integers_.scan(words, n, 0, quotients);
      return quotients.least >= least && quotients.greatest <= greatest;
    });
  }

 private:
  /// Call each(part, n) for all parts until one returns false.
  template <class Each>
  bool visit(Each&& each) {
    for (std::size_t begin = 0; begin < n_values_; begin += kScanValues) {
      const std::size_t n = std::min(kScanValues, n_values_ - begin);
      const std::byte* from = data_ + begin * element_bytes_;
      std::uint64_t marks[kScanValues / 64];
      alignas(8) std::byte copy[kScanValues * 8];
      if (plan_.has_special && kernels_.find(from, n, plan_.special, marks)) {
        std::memcpy(copy, from, n * element_bytes_);
        for (std::size_t i = 0; i < n; ++i) {
          if (((marks[i / 64] >> (i % 64)) & 1) != 0) {
            std::memcpy(copy + i * element_bytes_, &typical_, element_bytes_);
          }
        }
        from = copy;
      }
      if (!each(from, n)) return false;
    }
    return true;
  }

  const WordKernels& kernels_;
  const WordKernels& integers_;
  const std::byte* data_;
  std::size_t n_values_;
  std::size_t element_bytes_;
  const ExactPlan& plan_;
  std::uint64_t typical_;
};

bool fits_32_bits(const WordRange& range, std::uint64_t factor) {
  const auto divisor = static_cast<std::int64_t>(factor);
  if (divisor <= 0) return false;
  return range.least / divisor >= std::numeric_limits<std::int32_t>::min() &&
         range.greatest / divisor <= std::numeric_limits<std::int32_t>::max();
}

/// Set the plan's factor; returns true if 32-bit words suffice.
bool choose_factor(const ExactValues& values, const ExactLook& look, ExactPlan& plan, Isa isa) {
  const bool narrow_type = dtype_bytes(values.dtype) < 8;
  plan.factor = 1;
  if (narrow_type && look.factor == 1) return true;
  const bool may_fit = look.range / look.factor <= std::numeric_limits<std::uint32_t>::max();
  if (!narrow_type && !may_fit && look.factor == 1) return false;
  Scanner scanner(values, plan, look.origin_bits, isa);
  const WordRange range = scanner.range();
  if (range.ones == 0) return true;
  // The scan proves the number of common trailing zeros; an odd factor must be tried.
  const std::uint64_t power = std::uint64_t{1} << std::countr_zero(range.ones);
  const std::uint64_t odd = look.factor >> std::countr_zero(look.factor);
  plan.factor = power;
  if (!narrow_type && odd > 1 && odd <= (std::uint64_t{1} << 62) / power &&
      scanner.all_multiples(power * odd, range)) {
    plan.factor = power * odd;
  }
  if (narrow_type && plan.factor > std::uint64_t{1} << 31) plan.factor = 1;
  return narrow_type || fits_32_bits(range, plan.factor);
}

/// Share of special values among the n values at `data`.
double special_share(const ExactValues& values, const std::byte* data, std::size_t n,
                     const ExactPlan& plan, Isa isa) {
  if (!plan.has_special || n == 0) return 0;
  const WordKernels& kernels = exact_kernels(isa).of_dtype[static_cast<std::size_t>(values.dtype)];
  const std::size_t element_bytes = dtype_bytes(values.dtype);
  std::size_t n_special = 0;
  for (std::size_t begin = 0; begin < n; begin += kScanValues) {
    std::uint64_t marks[kScanValues / 64];
    const std::size_t n_here = std::min(kScanValues, n - begin);
    if (!kernels.find(data + begin * element_bytes, n_here, plan.special, marks)) continue;
    for (std::size_t i = 0; i < (n_here + 63) / 64; ++i) {
      n_special += static_cast<std::size_t>(std::popcount(marks[i]));
    }
  }
  return static_cast<double>(n_special) / static_cast<double>(n);
}

/// Cost of a sample, scaled as if it had the same share of special values as the chunk.
double corrected(double cost, double share_in_sample, double share_in_all) {
  return share_in_sample < 1 ? cost * (1 - share_in_all) / (1 - share_in_sample) : cost;
}

/// Trial compression of a part of a chunk by zstd.
class ZstdTrial {
 public:
  /// Sample n_parts parts of the chunk, n_trial bytes in total.
  ZstdTrial(const ExactValues& values, const ExactPlan& plan, double special_in_all,
            std::size_t n_trial, std::size_t n_parts, Workspace& workspace)
      : element_bytes_(dtype_bytes(values.dtype)), workspace_(workspace) {
    const std::size_t n_bytes = values_in(values.extents) * element_bytes_;
    whole_ = n_bytes <= n_trial;
    if (whole_) n_parts = 1;
    n_bytes_ = whole_ ? n_bytes : n_trial;
    n_out_ = ZSTD_compressBound(n_bytes_);
    sample_ = workspace.area<std::byte>(Slot::sample, 2 * n_bytes_ + n_out_);
    if (sample_ == nullptr) return;
    // Irregular distances, since a regular one could equal that of planes.
    static constexpr std::size_t kTenths[kTrialParts] = {3, 7, 1, 6, 2, 8, 4, 5};
    const std::size_t part = n_bytes_ / n_parts;
    for (std::size_t k = 0; k < n_parts; ++k) {
      const std::size_t at = (n_bytes - part) / (80 * n_parts) * (10 * k + kTenths[k]) * 8;
      std::memcpy(sample_ + k * part, static_cast<const std::byte*>(values.data) + at, part);
    }
    const double special_here =
        special_share(values, sample_, n_bytes_ / element_bytes_, plan, workspace.isa());
    correction_ = corrected(1, special_here, special_in_all);
  }

  /// Encoded size divided by original size; 2 if out of memory.
  double share(bool shuffled, int level) {
    frame_ = {};
    void* context = workspace_.zstd_compressor();
    if (sample_ == nullptr || context == nullptr) return 2;
    std::byte* from = sample_;
    std::byte* out = sample_ + 2 * n_bytes_;
    if (shuffled) {
      from = sample_ + n_bytes_;
      shuffle_bytes(element_bytes_, {sample_, n_bytes_}, {from, n_bytes_});
    }
    const std::size_t n =
        ZSTD_compressCCtx(static_cast<ZSTD_CCtx*>(context), out, n_out_, from, n_bytes_, level);
    if (ZSTD_isError(n) != 0) return 2;
    if (whole_) frame_ = {out, n};
    return correction_ * static_cast<double>(n) / static_cast<double>(n_bytes_);
  }

  /// zstd's frame from the last share(), if the sample is the complete chunk; else empty. Valid
  /// until the next share().
  std::span<const std::byte> frame() const { return frame_; }

 private:
  bool whole_ = false;
  std::span<const std::byte> frame_;
  double correction_ = 1;  ///< Correction for the share of special values in the sample.
  std::size_t element_bytes_;
  Workspace& workspace_;
  std::byte* sample_ = nullptr;
  std::size_t n_bytes_ = 0;
  std::size_t n_out_ = 0;
};

/// Change the plan to zstd if that is smaller than `best`; returns the smaller size.
double try_zstd(const ExactValues& values, bool repeats, bool thorough, double special_in_all,
                double best, double to_beat, ExactPlan& plan, Workspace& workspace) {
  const std::size_t n_all = values_in(values.extents) * dtype_bytes(values.dtype);
  const auto n_bytes = static_cast<double>(n_all);
  const auto consider = [&](ZstdTrial& trial, ExactForm form, int level) {
    plan.frame = {};
    const double bytes = trial.share(form == ExactForm::shuffled, level) * n_bytes;
    if (bytes >= kClearlySmaller * best) return false;
    best = bytes;
    plan.form = form;
    plan.zstd_level = level;
    plan.frame = trial.frame();
    return true;
  };
  const std::size_t n_trial = std::clamp(n_all / kTrialShare, kTrialBytesMin, kTrialBytesMax);
  ZstdTrial quick(values, plan, special_in_all, n_trial, kTrialParts, workspace);
  if (!thorough) {
    if (consider(quick, ExactForm::shuffled, 1)) consider(quick, ExactForm::shuffled, 3);
    if (repeats) consider(quick, ExactForm::zstd, 3);
    return best;
  }
  const double of_lossy =
      kHighRatioOfLossy * to_beat < n_bytes ? kWithinReachAtHighRatio : kWithinReachOfLossy;
  const double reach = std::min(kWithinReach * best, of_lossy * to_beat) / n_bytes;
  const bool shuffled_near = quick.share(true, 1) < reach;
  const bool plain_near = quick.share(false, 3) < reach;
  if (!shuffled_near && !plain_near) return best;
  ZstdTrial stretch(values, plan, special_in_all, kStretchBytes, kStretches, workspace);
  if (shuffled_near && consider(stretch, ExactForm::shuffled, 1)) {
    consider(stretch, ExactForm::shuffled, 3);
  }
  if (plain_near) consider(stretch, ExactForm::zstd, 3);
  return best;
}

}  // namespace

ExactPlan choose_exact(const ExactValues& values, ZstdTrials trials, Workspace& workspace,
                       std::size_t to_beat) {
  const auto n_values = static_cast<double>(values_in(values.extents));
  const auto element_bytes = dtype_bytes(values.dtype);
  const double n_bytes = n_values * static_cast<double>(element_bytes);
  ExactPlan plan;
  plan.estimated_bytes = static_cast<std::size_t>(n_bytes);
  ExactSample sample(values, workspace);
  if (!sample.ok()) return plan;
  const ExactLook look = sample.look();
  const double by_density =
      kRepeatsByDensity / (static_cast<double>(look.range) / static_cast<double>(look.factor) + 1);
  const bool repeated = look.repeated_share >= kRepeatsForZstd + by_density || look.has_special;
  const auto limit = static_cast<double>(to_beat);
  if (!repeated && element_bytes >= 4 && kRatioWithoutRepeats * limit < n_bytes) return plan;
  plan.origin = look.origin;
  plan.has_special = look.has_special;
  plan.special = look.special;
  const bool wide = !choose_factor(values, look, plan, workspace.isa());
  const ExactSample::Costs costs = sample.measure(plan, wide);
  plan.order = costs.best_order;
  plan.low_is_noise = wide && costs.low_bits > kLowIsNoise;
  const double special_in_all = special_share(values, static_cast<const std::byte*>(values.data),
                                              values_in(values.extents), plan, workspace.isa());
  double best = corrected(costs.best_bits, costs.special_share, special_in_all) * n_values / 8 +
                static_cast<double>(costs.table_bytes) + 32;
  plan.form = wide ? ExactForm::wide : ExactForm::words;

  // Values of less than 32 bits with a size to beat are a vocabulary's ranks. Their repeats may lie
  // at any distance.
  const bool ranks = element_bytes < 4 && to_beat != SIZE_MAX;
  const bool repeats = repeated || ranks || best * kHighRatio < n_bytes;
  const bool hopeless = best > kWorthCoding * n_bytes && !repeats;
  const bool predicted = costs.best_bits < kGainOfPrediction * costs.unpredicted_bits;
  if (trials != ZstdTrials::none && !hopeless && (repeats || !predicted)) {
    const bool thorough = repeats && trials == ZstdTrials::thorough;
    best = try_zstd(values, repeats, thorough, special_in_all, best, limit, plan, workspace);
  }
  if (best > kWorthCoding * n_bytes) {
    plan.form = ExactForm::stored;
    best = n_bytes;
  }
  plan.estimated_bytes = static_cast<std::size_t>(best);
  return plan;
}

// --- Exact coding: converts values to predicted words and back, piece by piece.

namespace {

const WordKernels& kernels_of(DType dtype, const Workspace& workspace) {
  return exact_kernels(workspace.isa()).of_dtype[static_cast<std::size_t>(dtype)];
}

/// Source of the words of pieces; a special value repeats the previous word and becomes a patch.
template <class Word>
class WordSource {
 public:
  WordSource(const ExactValues& values, const ExactPlan& plan, PatchMap& patches,
             const Workspace& workspace)
      : kernels_(kernels_of(values.dtype, workspace)),
        data_(static_cast<const std::byte*>(values.data)),
        element_bytes_(dtype_bytes(values.dtype)),
        map_(word_map(plan.origin, plan.factor)),
        plan_(plan),
        patches_(patches) {}

  void operator()(std::size_t index, std::size_t n, Word* q) {
    const std::byte* from = data_ + index * element_bytes_;
    if constexpr (sizeof(Word) == 4) {
      kernels_.to_words(from, n, map_, q);
    } else {
      kernels_.to_wide(from, n, map_, q);
    }
    if (plan_.has_special) {
      std::array<std::uint64_t, kPieceValues / 64> marks;
      if (kernels_.find(from, n, plan_.special, marks.data())) {
        hold_marked(marks.data(), n, held_, q, [&](std::size_t i) { patches_.mark(index + i); });
      }
      held_ = q[n - 1];
    }
  }

 private:
  const WordKernels& kernels_;
  const std::byte* data_;
  std::size_t element_bytes_;
  WordMap map_;
  const ExactPlan& plan_;
  PatchMap& patches_;
  Word held_ = 0;
};

}  // namespace

WordMap word_map(std::uint64_t origin, std::uint64_t factor) {
  WordMap map;
  map.origin = origin;
  map.factor = factor;
  map.shift = static_cast<unsigned>(std::countr_zero(factor));
  const std::uint64_t odd = factor >> map.shift;
  // Newton's iteration: it starts with an inverse modulo 2^3, and each round doubles the bits.
  map.inverse = odd;
  for (int round = 0; round < 5; ++round) map.inverse *= 2 - odd * map.inverse;
  return map;
}

bool encode_words(const ExactValues& values, const ExactPlan& plan, CodeWriter& codes,
                  PatchMap& patches, Workspace& workspace) {
  return encode_pieces(values.extents, plan.order, codes, workspace,
                       WordSource<std::int32_t>(values, plan, patches, workspace));
}

bool decode_words(CodeReader& codes, const ExactPlan& plan, DType dtype, const Extents& extents,
                  void* values, Workspace& workspace) {
  const WordKernels& kernels = kernels_of(dtype, workspace);
  const WordMap map = word_map(plan.origin, plan.factor);
  auto* to = static_cast<std::byte*>(values);
  return decode_pieces(codes, extents, plan.order, workspace,
                       [&](std::size_t index, std::size_t n, const std::int32_t* q) {
                         kernels.from_words(q, n, map, to + index * dtype_bytes(dtype));
                       });
}

bool encode_wide(const ExactValues& values, const ExactPlan& plan, std::int32_t* low,
                 std::int32_t* high, PatchMap& patches, Workspace& workspace) {
  const LorenzoKernels& kernels = lorenzo_kernels(workspace.isa());
  WordSource<std::int64_t> source(values, plan, patches, workspace);
  Pieces<std::int64_t> pieces(make_walk(values.extents, plan.order), workspace);
  if (!pieces.ok()) return false;
  while (WidePiece* piece = pieces.next()) {
    const std::size_t index = pieces.index();
    source(index, piece->n, piece->q);
    kernels.difference_wide(*piece, low + index, high + index);
  }
  return true;
}

bool decode_wide(const std::int32_t* low, const std::int32_t* high, const ExactPlan& plan,
                 DType dtype, const Extents& extents, void* values, Workspace& workspace) {
  const LorenzoKernels& kernels = lorenzo_kernels(workspace.isa());
  const WordKernels& words = kernels_of(dtype, workspace);
  const WordMap map = word_map(plan.origin, plan.factor);
  auto* to = static_cast<std::byte*>(values);
  Pieces<std::int64_t> pieces(make_walk(extents, plan.order), workspace);
  if (!pieces.ok()) return false;
  while (WidePiece* piece = pieces.next()) {
    const std::size_t index = pieces.index();
    kernels.sum_wide(*piece, low + index, high + index);
    words.from_wide(piece->q, piece->n, map, to + index * dtype_bytes(dtype));
  }
  return true;
}

// --- Exact chunks: serialised forms.
//
// After the head comes a byte with the form (low four bits) and flags. Forms zstd and shuffled then
// have one zstd frame, up to the end of the chunk. Forms words and wide have the order, origin,
// factor, code sections and patches.

namespace {

constexpr std::size_t kHeadBytesMax = 64;
constexpr std::size_t kSlack = 64;

constexpr std::uint8_t kFormMask = 0x0F;
constexpr std::uint8_t kNoiseFlag = 0x10;   ///< Form wide: low words are stored uncoded.
constexpr std::uint8_t kPackedFlag = 0x40;  ///< Codes are bit-packed.
constexpr std::uint8_t kBookFlag = 0x80;    ///< Code sections may use a shared book.

/// Ratio from which on sections are so small that trying zstd on all of them costs little.
constexpr double kSmallSectionsRatio = 8;

SectionChoice sections_for(const Settings& settings, const Book* book, bool high_ratio) {
  SectionChoice choice;
  choice.book = book;
  choice.zstd_level = tries_more(settings.preset) ? 3 : 1;
  choice.zstd = settings.lossless_stage == Choice::off  ? ZstdUse::never
                : settings.lossless_stage == Choice::on ? ZstdUse::always
                : settings.preset == Preset::fast       ? ZstdUse::never
                : high_ratio                            ? ZstdUse::always
                : tries_more(settings.preset)           ? ZstdUse::searched
                                                        : ZstdUse::promising;
  return choice;
}

/// Encoder of one chunk, in Slot::trial.
class Encoder {
 public:
  Encoder(const ChunkHead& head, std::span<const std::byte> values, const Settings& settings,
          const Book* book, bool high_ratio, Workspace& workspace)
      : head_(head),
        values_(values),
        form_(settings.preset == Preset::fast ? CodeForm::packed : CodeForm::grouped),
        sections_(sections_for(settings, form_ == CodeForm::grouped ? book : nullptr, high_ratio)),
        workspace_(workspace) {}

  /// Encode in form zstd or shuffled. False if out of memory.
  bool zstd(const ExactPlan& plan) {
    if (!begin(kHeadBytesMax + ZSTD_compressBound(values_.size()))) return false;
    out_->number(static_cast<std::uint8_t>(plan.form));
    if (!plan.frame.empty()) {
      out_->bytes(plan.frame.data(), plan.frame.size());
      return true;
    }
    const std::byte* from = values_.data();
    if (plan.form == ExactForm::shuffled) {
      auto* shuffled = workspace_.area<std::byte>(Slot::transform, values_.size() + kSlack);
      if (shuffled == nullptr) return false;
      shuffle_bytes(dtype_bytes(head_.dtype), values_, {shuffled, values_.size()});
      from = shuffled;
    }
    void* context = workspace_.zstd_compressor();
    if (context == nullptr) return false;
    const std::span<std::uint8_t> rest = out_->rest();
    const std::size_t n = ZSTD_compressCCtx(static_cast<ZSTD_CCtx*>(context), rest.data(),
                                            rest.size(), from, values_.size(), plan.zstd_level);
    if (ZSTD_isError(n) != 0) return false;
    out_->advance(n);
    return true;
  }

  bool words(const ExactPlan& plan) {
    const ExactValues values = exact_values();
    auto* bits =
        workspace_.area<std::uint64_t>(Slot::patch_bits, PatchMap::words_of(head_.n_values));
    OutgoingCodes codes;
    if (bits == nullptr || !codes.prepare(head_.n_values, form_, workspace_)) return false;
    PatchMap patches(bits, head_.n_values);
    if (!encode_words(values, plan, codes.writer(), patches, workspace_)) return false;
    const std::size_t room = codes.finish() + patch_room(patches);
    if (!begin(room)) return false;
    write_parameters(plan, 0);
    return codes.write(sections_, *out_, workspace_) && write_special(patches);
  }

  bool wide(const ExactPlan& plan) {
    const std::size_t n = head_.n_values;
    auto* bits = workspace_.area<std::uint64_t>(Slot::patch_bits, PatchMap::words_of(n));
    auto* low = workspace_.area<std::int32_t>(Slot::transform_values, 2 * n + kSlack);
    if (bits == nullptr || low == nullptr) return false;
    std::int32_t* high = low + n;
    PatchMap patches(bits, n);
    if (!encode_wide(exact_values(), plan, low, high, patches, workspace_)) return false;
    OutgoingCodes codes;
    if (!codes_of(high, codes)) return false;
    const std::size_t room = codes.finish() + patch_room(patches);
    // The codes of the low words may take slightly more bytes than the words.
    if (!begin(room + 5 * n + (std::size_t{1} << 16))) return false;
    write_parameters(plan, plan.low_is_noise ? kNoiseFlag : std::uint8_t{0});
    if (!codes.write(sections_, *out_, workspace_)) return false;
    if (plan.low_is_noise) {
      out_->bytes(low, n * sizeof(std::int32_t));
    } else {
      OutgoingCodes low_codes;
      if (!codes_of(low, low_codes)) return false;
      static_cast<void>(low_codes.finish());
      if (!low_codes.write(sections_, *out_, workspace_)) return false;
    }
    return write_special(patches);
  }

  std::span<std::uint8_t> chunk() { return {chunk_, out_->n_written()}; }

 private:
  ExactValues exact_values() const { return {head_.dtype, values_.data(), head_.extents}; }

  std::size_t patch_room(const PatchMap& patches) const {
    return kHeadBytesMax +
           patches_bytes_max(head_.n_values, patches.count(), dtype_bytes(head_.dtype));
  }

  bool begin(std::size_t room) {
    chunk_ = workspace_.area<std::uint8_t>(Slot::trial, room + kSlack);
    if (chunk_ == nullptr) return false;
    out_.emplace(std::span<std::uint8_t>(chunk_, room));
    write_head(head_, *out_);
    return true;
  }

  void write_parameters(const ExactPlan& plan, std::uint8_t flags) {
    auto first = static_cast<std::uint8_t>(static_cast<std::uint8_t>(plan.form) | flags);
    if (form_ == CodeForm::packed) first |= kPackedFlag;
    if (sections_.book != nullptr) first |= kBookFlag;
    out_->number(first);
    out_->number(static_cast<std::uint8_t>(plan.order));
    out_->number(plan.origin);
    out_->varint(plan.factor);
    if (sections_.book != nullptr) out_->number(sections_.book->id());
  }

  bool codes_of(const std::int32_t* words, OutgoingCodes& codes) {
    return codes.prepare(head_.n_values, form_, workspace_) &&
           lorenzo_encode_integers(words, {1, 1, 1, head_.n_values}, 0, codes.writer(), workspace_);
  }

  /// Write the patches. Types of less than 32 bits have none, since no value can be special.
  bool write_special(const PatchMap& patches) {
    if (dtype_bytes(head_.dtype) == 4) {
      return write_patches(reinterpret_cast<const std::uint32_t*>(values_.data()), patches,
                           {sections_.zstd, 1, nullptr}, *out_, workspace_);
    }
    if (dtype_bytes(head_.dtype) == 8) {
      return write_patches(reinterpret_cast<const std::uint64_t*>(values_.data()), patches,
                           {sections_.zstd, 1, nullptr}, *out_, workspace_);
    }
    return !out_->failed();
  }

  const ChunkHead& head_;
  std::span<const std::byte> values_;
  CodeForm form_;
  SectionChoice sections_;
  Workspace& workspace_;
  std::uint8_t* chunk_ = nullptr;
  std::optional<ChunkWriter> out_;
};

/// Decoder of one chunk.
struct Decoder {
  ChunkReader& in;
  const ChunkHead& head;
  const Book* book;
  std::span<std::byte> values;
  Workspace& workspace;
  CodeForm form = CodeForm::grouped;

  DecodeFailure zstd(bool shuffled) {
    const std::span<const std::uint8_t> frame = in.rest();
    void* context = workspace.zstd_decompressor();
    std::byte* to = values.data();
    if (shuffled) to = workspace.area<std::byte>(Slot::transform, values.size() + kSlack);
    if (context == nullptr || to == nullptr) return DecodeFailure::memory_out;
    const std::size_t n = ZSTD_decompressDCtx(static_cast<ZSTD_DCtx*>(context), to, values.size(),
                                              frame.data(), frame.size());
    if (ZSTD_isError(n) != 0 || n != values.size()) return DecodeFailure::corrupt;
    if (shuffled) shuffle_back(to);
    return in.take(frame.size()) != nullptr ? DecodeFailure::none : DecodeFailure::corrupt;
  }

  DecodeFailure modelled(std::uint8_t first) {
    const DecodeFailure failure =
        decode_modelled(in, head, (first & kFloatsFlag) != 0, values, workspace);
    return failure != DecodeFailure::none ? failure : patches();
  }

  DecodeFailure coded(std::uint8_t first) {
    const bool is_wide = static_cast<ExactForm>(first & kFormMask) == ExactForm::wide;
    ExactPlan plan;
    plan.order = in.number<std::uint8_t>();
    plan.origin = in.number<std::uint64_t>();
    plan.factor = in.varint();
    const bool sensible = plan.order <= 4 && plan.factor >= 1;
    if (in.failed() || !sensible || (is_wide && dtype_bytes(head.dtype) != 8)) {
      return DecodeFailure::corrupt;
    }
    form = (first & kPackedFlag) != 0 ? CodeForm::packed : CodeForm::grouped;
    if ((first & kBookFlag) != 0) {
      const auto id = in.number<std::uint32_t>();
      if (in.failed()) return DecodeFailure::corrupt;
      if (book == nullptr || book->id() != id) return DecodeFailure::book_missing;
    } else {
      book = nullptr;
    }
    const DecodeFailure failure = is_wide ? wide(plan, (first & kNoiseFlag) != 0) : words(plan);
    return failure != DecodeFailure::none ? failure : patches();
  }

 private:
  void shuffle_back(const std::byte* shuffled) {
    unshuffle_bytes(dtype_bytes(head.dtype), {shuffled, values.size()}, values);
  }

  DecodeFailure read_codes(IncomingCodes& codes) {
    if (codes.read(head.n_values, form, book, in, workspace)) return DecodeFailure::none;
    return codes.memory_out() ? DecodeFailure::memory_out : DecodeFailure::corrupt;
  }

  /// Outcome of decoding; exceptions that are left over are an error even if `done` is true.
  static DecodeFailure outcome(bool done, IncomingCodes& codes) {
    if (done) return codes.used_up() ? DecodeFailure::none : DecodeFailure::corrupt;
    return codes.reader().failed() ? DecodeFailure::corrupt : DecodeFailure::memory_out;
  }

  DecodeFailure words(const ExactPlan& plan) {
    IncomingCodes codes;
    const DecodeFailure failure = read_codes(codes);
    if (failure != DecodeFailure::none) return failure;
    const bool done =
        decode_words(codes.reader(), plan, head.dtype, head.extents, values.data(), workspace);
    return outcome(done, codes);
  }

  DecodeFailure integers(std::int32_t* to) {
    IncomingCodes codes;
    const DecodeFailure failure = read_codes(codes);
    if (failure != DecodeFailure::none) return failure;
    const bool done =
        lorenzo_decode_integers(codes.reader(), {1, 1, 1, head.n_values}, 0, to, workspace);
    return outcome(done, codes);
  }

  DecodeFailure wide(const ExactPlan& plan, bool low_is_noise) {
    const std::size_t n = head.n_values;
    auto* low = workspace.area<std::int32_t>(Slot::transform_values, 2 * n + kSlack);
    if (low == nullptr) return DecodeFailure::memory_out;
    DecodeFailure failure = integers(low + n);
    if (failure != DecodeFailure::none) return failure;
    if (low_is_noise) {
      const std::uint8_t* stored = in.take(n * sizeof(std::int32_t));
      if (stored == nullptr) return DecodeFailure::corrupt;
      std::memcpy(low, stored, n * sizeof(std::int32_t));
    } else {
      failure = integers(low);
      if (failure != DecodeFailure::none) return failure;
    }
    const bool done =
        decode_wide(low, low + n, plan, head.dtype, head.extents, values.data(), workspace);
    return done ? DecodeFailure::none : DecodeFailure::memory_out;
  }

  DecodeFailure patches() {
    bool memory_out = false;
    bool done = true;
    if (dtype_bytes(head.dtype) == 4) {
      done = apply_patches(in, reinterpret_cast<std::uint32_t*>(values.data()), head.n_values,
                           workspace, &memory_out);
    } else if (dtype_bytes(head.dtype) == 8) {
      done = apply_patches(in, reinterpret_cast<std::uint64_t*>(values.data()), head.n_values,
                           workspace, &memory_out);
    }
    if (done) return DecodeFailure::none;
    return memory_out ? DecodeFailure::memory_out : DecodeFailure::corrupt;
  }
};

}  // namespace

namespace {

/// All forms but dictionaries.
ExactAttempt encode_values(const ChunkHead& head, std::span<const std::byte> values,
                           const Settings& settings, const Book* book, Workspace& workspace,
                           std::size_t to_beat) {
  const ExactPlan plan = choose_exact({head.dtype, values.data(), head.extents},
                                      trials_of_encoding(settings), workspace, to_beat);
  if (static_cast<double>(plan.estimated_bytes) > kEstimateWithin * static_cast<double>(to_beat)) {
    return {};
  }
  const bool more = tries_more(settings.preset);
  ExactAttempt best;
  if (more) {
    const ZstdUse zstd = settings.lossless_stage == Choice::off ? ZstdUse::never : ZstdUse::always;
    best = encode_modelled_chunk(head, {head.dtype, values.data(), head.extents}, plan, zstd,
                                 std::min(plan.estimated_bytes, to_beat), workspace);
    if (best.memory_out) return best;
  }
  const bool surely_larger = kSureBelowRatio * plan.estimated_bytes > values.size() &&
                             static_cast<double>(plan.estimated_bytes) >
                                 kSurelyLarger * static_cast<double>(best.chunk.size());
  if (plan.form == ExactForm::stored || (!best.chunk.empty() && surely_larger)) return best;
  const double small_from = more ? kSureBelowRatio : kSmallSectionsRatio;
  const bool high_ratio =
      static_cast<double>(plan.estimated_bytes) * small_from < static_cast<double>(values.size());
  Encoder encoder(head, values, settings, book, high_ratio, workspace);
  const bool done = plan.form == ExactForm::words  ? encoder.words(plan)
                    : plan.form == ExactForm::wide ? encoder.wide(plan)
                                                   : encoder.zstd(plan);
  if (!done) return {{}, true};
  if (!best.chunk.empty() && best.chunk.size() < encoder.chunk().size()) return best;
  return {encoder.chunk(), false};
}

}  // namespace

ExactAttempt encode_exact_chunk(const ChunkHead& head, std::span<const std::byte> values,
                                const Settings& settings, const Book* book, Workspace& workspace,
                                std::size_t to_beat) {
  const ExactAttempt best = encode_values(head, values, settings, book, workspace, to_beat);
  if (best.memory_out || !tries_more(settings.preset) || dtype_bytes(head.dtype) < 4) return best;
  if (best.chunk.empty() && to_beat != SIZE_MAX) return best;  // The estimate is too large.
  // The words and ranks overwrite the areas that hold the best chunk.
  auto* kept = workspace.area<std::uint8_t>(Slot::exact, best.chunk.size() + kSlack);
  if (kept == nullptr) return {{}, true};
  std::copy(best.chunk.begin(), best.chunk.end(), kept);
  const std::size_t n_best = best.chunk.empty() ? values.size() : best.chunk.size();
  const auto encode_part = [&](const ChunkHead& part_head, std::span<const std::byte> part,
                               std::size_t part_to_beat) {
    return encode_values(part_head, part, settings, nullptr, workspace, part_to_beat);
  };
  const ExactAttempt dictionary =
      encode_dictionary_chunk(head, values, std::min(n_best, to_beat), encode_part, workspace);
  if (dictionary.memory_out || !dictionary.chunk.empty()) return dictionary;
  return {{kept, best.chunk.size()}, false};
}

bool exact_may_be_below(const ChunkHead& head, std::span<const std::byte> values,
                        const Settings& settings, Workspace& workspace, std::size_t n_bytes) {
  const ExactPlan plan = choose_exact({head.dtype, values.data(), head.extents},
                                      trials_of_encoding(settings), workspace);
  if (plan.form == ExactForm::stored) return false;
  if (!plan.frame.empty()) return plan.frame.size() < n_bytes;
  if (plan.form == ExactForm::zstd || plan.form == ExactForm::shuffled) return true;
  const bool by_zstd = settings.lossless_stage != Choice::off && tries_more(settings.preset);
  return static_cast<double>(plan.estimated_bytes) <
         (by_zstd ? kSectionsWithin : kEstimateWithin) * static_cast<double>(n_bytes);
}

ZstdTrials trials_of_encoding(const Settings& settings) {
  return settings.lossless_stage == Choice::off ? ZstdTrials::none
         : settings.preset == Preset::fast      ? ZstdTrials::quick
                                                : ZstdTrials::thorough;
}

ZstdTrials trials_of_estimate(const Settings& settings) {
  return settings.lossless_stage == Choice::off ? ZstdTrials::none : ZstdTrials::quick;
}

std::size_t estimate_exact_bytes(const ChunkHead& head, std::span<const std::byte> values,
                                 const Settings& settings, Workspace& workspace) {
  return choose_exact({head.dtype, values.data(), head.extents}, trials_of_estimate(settings),
                      workspace)
      .estimated_bytes;
}

namespace {

/// @param within  the values are the words or the ranks of a dictionary.
DecodeFailure decode_values(ChunkReader& in, const ChunkHead& head, const Book* book,
                            std::span<std::byte> values, Workspace& workspace, bool within) {
  const auto first = in.number<std::uint8_t>();
  if (in.failed() || head.n_values == 0) return DecodeFailure::corrupt;
  Decoder decoder{in, head, book, values, workspace};
  const auto form = static_cast<ExactForm>(first & kFormMask);
  const unsigned allowed = form == ExactForm::wide       ? kNoiseFlag | kPackedFlag | kBookFlag
                           : form == ExactForm::words    ? kPackedFlag | kBookFlag
                           : form == ExactForm::modelled ? kFloatsFlag
                                                         : 0U;
  if ((first & ~kFormMask & ~allowed) != 0) return DecodeFailure::corrupt;
  switch (form) {
    case ExactForm::zstd: return decoder.zstd(false);
    case ExactForm::shuffled: return decoder.zstd(true);
    case ExactForm::words:
    case ExactForm::wide: return decoder.coded(first);
    case ExactForm::modelled: return decoder.modelled(first);
    case ExactForm::dictionary: break;
    case ExactForm::stored:
    default: return DecodeFailure::corrupt;
  }
  if (within || dtype_bytes(head.dtype) < 4) return DecodeFailure::corrupt;
  const auto decode_part = [&](ChunkReader& part_in, const ChunkHead& part_head,
                               std::span<std::byte> part) {
    const DecodeFailure failure = decode_values(part_in, part_head, nullptr, part, workspace, true);
    // The format allows no book in a dictionary.
    return failure == DecodeFailure::book_missing ? DecodeFailure::corrupt : failure;
  };
  return decode_dictionary(in, head, values, decode_part, workspace);
}

}  // namespace

DecodeFailure decode_exact_chunk(ChunkReader& in, const ChunkHead& head, const Book* book,
                                 std::span<std::byte> values, Workspace& workspace) {
  return decode_values(in, head, book, values, workspace, false);
}

}  // namespace tailrace::trz
