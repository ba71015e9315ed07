// Exact coding: the decision. Words first, by their sampled cost; zstd where values repeat or
// prediction hardly helps, by trial on a part of the chunk.

#include "codec/trz/exact/exact.hpp"

#include <zstd.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>

#include "codec/trz/exact/exact_sample.hpp"
#include "codec/trz/predict/lorenzo_pieces.hpp"
#include "core/byte_shuffle.hpp"

namespace tailrace::trz {

namespace {

constexpr std::size_t kScanValues = 2048;
constexpr double kWorthCoding = 0.99;       // A chunk that shrinks by less is stored.
constexpr double kRepeatsForZstd = 0.005;   // Of a thousand values, scattered over the chunk,
constexpr double kRepeatsByDensity = 4096;  // above what a range of R integers explains, this / R.
constexpr double kHighRatio = 16;  // From here on the bytes may be runs and repeats of anything.
constexpr double kGainOfPrediction = 0.9;  // Bits against those without; more: try zstd.
constexpr double kClearlySmaller = 0.97;   // What a slower form must save.
constexpr std::size_t kTrialParts = 8;
constexpr std::size_t kTrialBytesMin = std::size_t{1} << 15;
constexpr std::size_t kTrialBytesMax = std::size_t{1} << 16;
constexpr std::size_t kTrialShare = 16;  // Of the chunk, at most.
/// Where values repeat, the same may lie far apart: then long stretches are tried, unless the short
/// trial was hopeless.
constexpr std::size_t kStretchBytes = std::size_t{1} << 21;
constexpr std::size_t kStretches = 4;
constexpr double kWithinReach = 1.4;
constexpr double kLowIsNoise = 31.6;  // Bits of 32.

std::size_t values_of(const Extents& extents) {
  return extents[0] * extents[1] * extents[2] * extents[3];
}

/// What all values have in common, special ones taken as the typical one.
class Scanner {
 public:
  Scanner(const ExactValues& values, const ExactPlan& plan, std::uint64_t typical, Isa isa)
      : kernels_(exact_kernels(isa).of_dtype[static_cast<std::size_t>(values.dtype)]),
        integers_(exact_kernels(isa).of_dtype[static_cast<std::size_t>(DType::i64)]),
        data_(static_cast<const std::byte*>(values.data)),
        n_values_(values_of(values.extents)),
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

  /// Whether every difference from the origin is a multiple of factor. The range is known.
  bool all_multiples(std::uint64_t factor, const WordRange& range) {
    const WordMap map = word_map(plan_.origin, factor);
    const auto divisor = static_cast<std::int64_t>(factor);
    if (divisor <= 0) return false;
    const std::int64_t least = range.least / divisor;
    const std::int64_t greatest = range.greatest / divisor;
    // The quotient modulo 2^64 of what is no multiple lies far outside, as odd factors permute.
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

/// Set the plan's factor; returns whether 32-bit words do.
bool settle_factor(const ExactValues& values, const ExactLook& look, ExactPlan& plan, Isa isa) {
  const bool narrow_type = dtype_bytes(values.dtype) < 8;
  plan.factor = 1;
  if (narrow_type && look.factor == 1) return true;
  const bool may_fit = look.range / look.factor <= std::numeric_limits<std::uint32_t>::max();
  if (!narrow_type && !may_fit && look.factor == 1) return false;
  Scanner scanner(values, plan, look.origin_bits, isa);
  const WordRange range = scanner.range();
  if (range.ones == 0) return true;
  // Common zeros at the end are certain now; an odd factor has to be tried.
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

/// Share of n values from `data` on that are special.
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

/// What a sample costs, were there as many special values in it as in all.
double corrected(double cost, double share_in_sample, double share_in_all) {
  return share_in_sample < 1 ? cost * (1 - share_in_all) / (1 - share_in_sample) : cost;
}

/// Compresses a part of a chunk by zstd, to see.
class ZstdTrial {
 public:
  /// Parts of it, n_trial bytes together.
  ZstdTrial(const ExactValues& values, const ExactPlan& plan, double special_in_all,
            std::size_t n_trial, std::size_t n_parts, Workspace& workspace)
      : element_bytes_(dtype_bytes(values.dtype)), workspace_(workspace) {
    const std::size_t n_bytes = values_of(values.extents) * element_bytes_;
    whole_ = n_bytes <= n_trial;
    if (whole_) n_parts = 1;
    n_bytes_ = whole_ ? n_bytes : n_trial;
    n_out_ = ZSTD_compressBound(n_bytes_);
    sample_ = workspace.area<std::byte>(Slot::sample, 2 * n_bytes_ + n_out_);
    if (sample_ == nullptr) return;
    // At no regular distance, which could be that of planes.
    static constexpr std::size_t tenths[kTrialParts] = {3, 7, 1, 6, 2, 8, 4, 5};
    const std::size_t part = n_bytes_ / n_parts;
    for (std::size_t k = 0; k < n_parts; ++k) {
      const std::size_t at = (n_bytes - part) / (80 * n_parts) * (10 * k + tenths[k]) * 8;
      std::memcpy(sample_ + k * part, static_cast<const std::byte*>(values.data) + at, part);
    }
    const double special_here =
        special_share(values, sample_, n_bytes_ / element_bytes_, plan, workspace.isa());
    correction_ = corrected(1, special_here, special_in_all);
  }

  /// Encoded over original size, 2 when memory is out.
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

  /// What share() made last, if the sample is the whole chunk; valid until it is called again.
  std::span<const std::byte> frame() const { return frame_; }

 private:
  bool whole_ = false;
  std::span<const std::byte> frame_;
  double correction_ = 1;  ///< For the special values in the sample.
  std::size_t element_bytes_;
  Workspace& workspace_;
  std::byte* sample_ = nullptr;
  std::size_t n_bytes_ = 0;
  std::size_t n_out_ = 0;
};

/// Take zstd into the plan where it is smaller than `best`; returns the least bytes.
double try_zstd(const ExactValues& values, bool repeats, bool thorough, double special_in_all,
                double best, ExactPlan& plan, Workspace& workspace) {
  const std::size_t n_all = values_of(values.extents) * dtype_bytes(values.dtype);
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
  const double reach = kWithinReach * best / n_bytes;
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

ExactPlan choose_exact(const ExactValues& values, ZstdTrials trials, Workspace& workspace) {
  const auto n_values = static_cast<double>(values_of(values.extents));
  const auto element_bytes = dtype_bytes(values.dtype);
  const double n_bytes = n_values * static_cast<double>(element_bytes);
  ExactPlan plan;
  plan.estimated_bytes = static_cast<std::size_t>(n_bytes);
  ExactSample sample(values, workspace);
  if (!sample.ok()) return plan;
  const ExactLook look = sample.look();
  plan.origin = look.origin;
  plan.has_special = look.has_special;
  plan.special = look.special;
  const bool wide = !settle_factor(values, look, plan, workspace.isa());
  const ExactSample::Costs costs = sample.measure(plan, wide);
  plan.order = costs.best_order;
  plan.low_is_noise = wide && costs.low_bits > kLowIsNoise;
  const double special_in_all = special_share(values, static_cast<const std::byte*>(values.data),
                                              values_of(values.extents), plan, workspace.isa());
  double best = corrected(costs.best_bits, costs.special_share, special_in_all) * n_values / 8 +
                static_cast<double>(costs.table_bytes) + 32;
  plan.form = wide ? ExactForm::wide : ExactForm::words;

  const double by_density =
      kRepeatsByDensity / (static_cast<double>(look.range) / static_cast<double>(look.factor) + 1);
  const bool repeats = look.repeated_share >= kRepeatsForZstd + by_density || look.has_special ||
                       best * kHighRatio < n_bytes;
  const bool hopeless = best > kWorthCoding * n_bytes && !repeats;
  const bool predicted = costs.best_bits < kGainOfPrediction * costs.unpredicted_bits;
  if (trials != ZstdTrials::none && !hopeless && (repeats || !predicted)) {
    const bool thorough = repeats && trials == ZstdTrials::thorough;
    best = try_zstd(values, repeats, thorough, special_in_all, best, plan, workspace);
  }
  if (best > kWorthCoding * n_bytes) {
    plan.form = ExactForm::stored;
    best = n_bytes;
  }
  plan.estimated_bytes = static_cast<std::size_t>(best);
  return plan;
}

// --- Exact coding: values to predicted words and back, piece by piece.

namespace {

const WordKernels& kernels_of(DType dtype, const Workspace& workspace) {
  return exact_kernels(workspace.isa()).of_dtype[static_cast<std::size_t>(dtype)];
}

/// Fills in the words of pieces; special values hold the word before them.
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
  // Newton's iteration: an inverse modulo 2^3 to start with, twice the bits in each round.
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

}  // namespace tailrace::trz
