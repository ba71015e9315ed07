// Vocabulary: few lattice points, identified by rank.

#include <zstd.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include "trz/encode_work.hpp"
#include "trz/exact/exact.hpp"
#include "trz/predict/words.hpp"

namespace tailrace::trz {
namespace {

/// Parameters of the promise test. It looks at few long parts, since repeats may lie far apart.
/// Chunks of up to kVocabularySmall values are coded without the test.
constexpr std::size_t kVocabularySmall = 16384;
constexpr std::size_t kVocabularyParts = 2;
constexpr std::size_t kVocabularyPart = 32;  ///< The test reads 1/32 of the chunk, clamped.
constexpr std::size_t kVocabularyLookMin = 2048;
constexpr std::size_t kVocabularyLookMax = 16384;
/// Minimum average number of values per word.
constexpr std::size_t kValuesPerWord = 4;
constexpr std::size_t kValuesPerWordSeen = 4;
/// zstd on the tested codes must be below this multiple of the size to beat. A short part contains
/// few of the repeats of a crystal, so the limit is higher if the ratio is high.
constexpr double kPromising = 1.2;
constexpr double kPromisingAtHighRatio = 4;
constexpr std::size_t kHighRatio = 50;

/// Maximum number of points between the least and the greatest word: one bit of memory each.
std::size_t points_max(const Work& work) { return 8 * work.n_values + (std::size_t{1} << 20); }

/// Replace codes by ranks in place, with one or two bytes each.
std::span<const std::byte> ranks_in_place(std::int32_t* q, std::size_t n, const Words& words) {
  auto* to = reinterpret_cast<std::byte*>(q);
  if (words.size() <= kWordsOfOneByte) {
    for (std::size_t i = 0; i < n; ++i) to[i] = static_cast<std::byte>(words.rank(q[i]));
    return {to, n};
  }
  for (std::size_t i = 0; i < n; ++i) {
    const auto rank = static_cast<std::uint16_t>(words.rank(q[i]));
    std::memcpy(to + 2 * i, &rank, sizeof rank);
  }
  return {to, 2 * n};
}

/// True if parts of the chunk suggest that a vocabulary would be smaller: most values lie on points
/// whose neighbouring points do not occur, or values repeat over long distances.
template <class T>
bool vocabulary_promises(const Work& work, const Lattice<T>& lattice, const T* fill,
                         std::size_t to_beat, std::int32_t* q, std::uint64_t* bits) {
  const std::size_t n = work.n_values;
  if (n <= kVocabularySmall) return true;
  const std::size_t n_part =
      std::clamp(n / kVocabularyPart, kVocabularyLookMin, kVocabularyLookMax) / kVocabularyParts;
  const std::size_t n_seen = n_part * kVocabularyParts;
  const auto* values = reinterpret_cast<const T*>(work.values.data());
  PatchMap patches(bits, n_seen);
  for (std::size_t k = 0; k < kVocabularyParts; ++k) {
    const std::size_t from = (n - n_part) / (kVocabularyParts - 1) * k;
    quantise_all(values + from, n_part, lattice, fill, q + k * n_part, patches,
                 work.workspace.isa());
  }
  Words words;
  if (!words.collect(q, n_seen, points_max(work), work.workspace)) return false;
  const bool repeated = words.size() * kValuesPerWordSeen <= n_seen;
  if (!repeated) return false;
  const auto n_alone = static_cast<std::size_t>(
      std::count_if(q, q + n_seen, [&](std::int32_t code) { return words.alone(code); }));
  if (2 * n_alone > n_seen) return true;
  const std::span<const std::byte> ranks = ranks_in_place(q, n_seen, words);
  const std::size_t room = ZSTD_compressBound(ranks.size());
  auto* frame = work.workspace.area<std::uint8_t>(Slot::trial, room);
  auto* context = static_cast<ZSTD_CCtx*>(work.workspace.zstd_compressor());
  if (frame == nullptr || context == nullptr) return false;
  const std::size_t n_bytes =
      ZSTD_compressCCtx(context, frame, room, ranks.data(), ranks.size(), 1);
  const bool high_ratio = to_beat * kHighRatio < work.values.size();
  const double reach = (high_ratio ? kPromisingAtHighRatio : kPromising) *
                       static_cast<double>(to_beat) / static_cast<double>(n);
  return ZSTD_isError(n_bytes) == 0 &&
         static_cast<double>(n_bytes) < reach * static_cast<double>(n_seen);
}

/// Patch values that break guards, as the words decode. Overwrites the codes of words and the trial
/// area of the ranks. @returns what keep_guards() returns; null if out of memory.
template <class T>
const T* guard_vocabulary(Work& work, const T* fill, std::span<const std::uint8_t> lattice_bytes,
                          std::size_t n_words, std::span<const std::byte> ranks,
                          PatchMap& patches) {
  Workspace& workspace = work.workspace;
  const std::size_t n = work.n_values;
  auto* words = workspace.area<T>(Slot::vocabulary, n_words + kSlack);
  auto* decoded = workspace.area<T>(Slot::trial, n + kSlack);
  ChunkReader in(lattice_bytes);
  if (words == nullptr || decoded == nullptr ||
      read_lattice<T>(in, {1, 1, 1, n_words}, nullptr, words, workspace) != DecodeFailure::none) {
    return nullptr;
  }
  const bool one_byte = n_words <= kWordsOfOneByte;
  for (std::size_t i = 0; i < n; ++i) {
    std::uint16_t rank = 0;
    if (one_byte) {
      rank = static_cast<std::uint8_t>(ranks[i]);
    } else {
      std::memcpy(&rank, ranks.data() + 2 * i, sizeof rank);
    }
    decoded[i] = words[rank];
  }
  return keep_guards(work, reinterpret_cast<const T*>(work.values.data()), fill, decoded, patches);
}

}  // namespace

template <class T>
Attempt encode_vocabulary(Work& work, const Lattice<T>& lattice, const T* fill, bool is_found,
                          std::size_t to_beat) {
  Workspace& workspace = work.workspace;
  const std::size_t n = work.n_values;
  const auto* values = reinterpret_cast<const T*>(work.values.data());
  auto* q = workspace.area<std::int32_t>(Slot::ranks, n + kSlack);
  auto* bits = workspace.area<std::uint64_t>(Slot::patch_bits, PatchMap::words_of(n));
  if (q == nullptr || bits == nullptr) return out_of_memory();
  // A fill value that was found by the sample is an ordinary word if it lies within reach.
  if (is_found && std::abs(static_cast<double>(*fill) - static_cast<double>(lattice.offset)) <
                      static_cast<double>(lattice.step) * static_cast<double>(n)) {
    fill = nullptr;
  }
  if (!vocabulary_promises(work, lattice, fill, to_beat, q, bits)) return {};
  PatchMap patches(bits, n);
  quantise_all(values, n, lattice, fill, q, patches, workspace.isa());
  Words words;
  if (!words.collect(q, n, points_max(work), workspace) || words.size() < 2 ||
      words.size() > std::min(kWordsMax, n / kValuesPerWord)) {
    return {};
  }
  ChunkHead rank_head = head_of(work, Method::exact, work.head.extents);
  rank_head.dtype = words.size() <= kWordsOfOneByte ? DType::u8 : DType::u16;
  const std::span<const std::byte> rank_bytes = ranks_in_place(q, n, words);
  const ExactAttempt ranks =
      encode_exact_chunk(rank_head, rank_bytes, work.settings, nullptr, workspace,
                         std::min(to_beat, n * dtype_bytes(rank_head.dtype)));
  if (ranks.memory_out) return out_of_memory();
  if (ranks.chunk.empty() || ranks.chunk.size() >= to_beat) return {};
  std::uint8_t head_bytes[kHeadBytesMax];
  ChunkWriter head_size(head_bytes);
  write_head(rank_head, head_size);
  const std::span<const std::uint8_t> body = ranks.chunk.subspan(head_size.n_written());

  auto* word_codes = workspace.area<std::int32_t>(Slot::vocabulary, words.size() + kSlack);
  OutgoingCodes codes;
  const ZstdUse zstd = sections_for(work, 1).zstd;
  const Extents extents{1, 1, 1, words.size()};
  LatticeJob<T> job;
  job.extents = extents;
  job.lattice = lattice;
  job.prediction.order = 1;
  job.sections.zstd = zstd;
  if (word_codes == nullptr || !codes.prepare(words.size(), job.form, workspace)) {
    return out_of_memory();
  }
  words.list(word_codes);
  if (!lorenzo_encode_integers(word_codes, extents, 1, codes.writer(), workspace)) {
    return out_of_memory();
  }
  const std::size_t n_patches_max = work.guards != nullptr ? n : patches.count();
  const std::size_t room = 2 * kHeadBytesMax + codes.finish() + body.size() +
                           patches_bytes_max(n, n_patches_max, sizeof(T));
  auto* chunk = workspace.area<std::uint8_t>(Slot::transform_values, room + kSlack);
  if (chunk == nullptr) return out_of_memory();
  ChunkWriter out({chunk, room});
  write_head(head_of(work, Method::vocabulary, work.head.extents), out);
  out.varint(words.size());
  const std::size_t lattice_at = out.n_written();
  if (!write_lattice(job, codes, out, workspace)) return out_of_memory();
  const std::span<const std::uint8_t> lattice_bytes(chunk + lattice_at,
                                                    out.n_written() - lattice_at);
  out.varint(body.size());
  out.bytes(body.data(), body.size());
  const T* patched = values;
  if (work.guards != nullptr) {
    patched = guard_vocabulary(work, fill, lattice_bytes, words.size(), rank_bytes, patches);
    if (patched == nullptr) return out_of_memory();
  }
  if (!write_patches(reinterpret_cast<const BitsOf<T>*>(patched), patches, {zstd, 1, nullptr}, out,
                     workspace)) {
    return out_of_memory();
  }
  return {{chunk, out.n_written()}, false, patches.count()};
}

template Attempt encode_vocabulary(Work&, const Lattice<float>&, const float*, bool, std::size_t);
template Attempt encode_vocabulary(Work&, const Lattice<double>&, const double*, bool, std::size_t);

}  // namespace tailrace::trz
