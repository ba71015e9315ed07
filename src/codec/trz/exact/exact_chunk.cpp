// Exact chunks: a plan's form in bytes, and back.
//
// After the head: the form (low four bits) with flags, then for zstd and shuffled one zstd frame to
// the end; for words and wide the order, origin, factor, code sections and patches.

#include "codec/trz/exact/exact_chunk.hpp"

#include <zstd.h>

#include "codec/trz/entropy/code_sections.hpp"
#include "codec/trz/entropy/patches.hpp"
#include "codec/trz/exact/exact.hpp"
#include "core/byte_shuffle.hpp"

namespace tailrace::trz {
namespace {

constexpr std::size_t kHeadBytesMax = 64;
constexpr std::size_t kSlack = 64;

constexpr std::uint8_t kFormMask = 0x0F;
constexpr std::uint8_t kNoiseFlag = 0x10;   ///< Wide: low words as they are.
constexpr std::uint8_t kPackedFlag = 0x40;  ///< Codes are bit-packed.
constexpr std::uint8_t kBookFlag = 0x80;    ///< Code sections may use a shared book.

/// From this ratio on, sections are so small that trying zstd on all of them costs little.
constexpr double kHighRatio = 8;

SectionChoice sections_for(const Settings& settings, const Book* book, bool high_ratio) {
  SectionChoice choice;
  choice.book = book;
  choice.zstd_level = settings.preset == Preset::ratio ? 3 : 1;
  choice.zstd = settings.lossless_stage == Choice::off  ? ZstdUse::never
                : settings.lossless_stage == Choice::on ? ZstdUse::always
                : settings.preset == Preset::ratio      ? ZstdUse::always
                : settings.preset == Preset::fast       ? ZstdUse::never
                : high_ratio                            ? ZstdUse::always
                                                        : ZstdUse::promising;
  return choice;
}

/// One chunk being encoded: where its bytes go.
class Encoder {
 public:
  Encoder(const ChunkHead& head, std::span<const std::byte> values, const Settings& settings,
          const Book* book, bool high_ratio, Workspace& workspace)
      : head_(head),
        values_(values),
        form_(settings.preset == Preset::fast ? CodeForm::packed : CodeForm::grouped),
        sections_(sections_for(settings, form_ == CodeForm::grouped ? book : nullptr, high_ratio)),
        workspace_(workspace) {}

  /// False when memory is out.
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
    // The low words' codes may take as much as they do themselves, and a little.
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

  /// The patches; none where nothing can be special (types of less than 32 bits).
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

/// One chunk being decoded.
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

  /// What became of decoding that says it is done or not; exceptions left over are an error, too.
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

ExactAttempt encode_exact_chunk(const ChunkHead& head, std::span<const std::byte> values,
                                const Settings& settings, const Book* book, Workspace& workspace) {
  const ZstdTrials trials = settings.lossless_stage == Choice::off ? ZstdTrials::none
                            : settings.preset == Preset::fast      ? ZstdTrials::quick
                                                                   : ZstdTrials::thorough;
  const ExactPlan plan = choose_exact({head.dtype, values.data(), head.extents}, trials, workspace);
  if (plan.form == ExactForm::stored) return {};
  const bool high_ratio =
      static_cast<double>(plan.estimated_bytes) * kHighRatio < static_cast<double>(values.size());
  Encoder encoder(head, values, settings, book, high_ratio, workspace);
  const bool done = plan.form == ExactForm::words  ? encoder.words(plan)
                    : plan.form == ExactForm::wide ? encoder.wide(plan)
                                                   : encoder.zstd(plan);
  if (!done) return {{}, true};
  return {encoder.chunk(), false};
}

std::size_t estimate_exact_bytes(const ChunkHead& head, std::span<const std::byte> values,
                                 Workspace& workspace) {
  return choose_exact({head.dtype, values.data(), head.extents}, ZstdTrials::quick, workspace)
      .estimated_bytes;
}

DecodeFailure decode_exact_chunk(ChunkReader& in, const ChunkHead& head, const Book* book,
                                 std::span<std::byte> values, Workspace& workspace) {
  const auto first = in.number<std::uint8_t>();
  if (in.failed() || head.n_values == 0) return DecodeFailure::corrupt;
  Decoder decoder{in, head, book, values, workspace};
  const auto form = static_cast<ExactForm>(first & kFormMask);
  const unsigned allowed = form == ExactForm::wide    ? kNoiseFlag | kPackedFlag | kBookFlag
                           : form == ExactForm::words ? kPackedFlag | kBookFlag
                                                      : 0U;
  if ((first & ~kFormMask & ~allowed) != 0) return DecodeFailure::corrupt;
  switch (form) {
    case ExactForm::zstd: return decoder.zstd(false);
    case ExactForm::shuffled: return decoder.zstd(true);
    case ExactForm::words:
    case ExactForm::wide: return decoder.coded(first);
    case ExactForm::stored: break;
  }
  return DecodeFailure::corrupt;
}

}  // namespace tailrace::trz
