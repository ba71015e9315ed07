// Form `dictionary` of exact chunks: finding the words, and both directions.

#include "trz/exact/dictionary.hpp"

#include <algorithm>
#include <bit>
#include <cstring>

#include "trz/entropy/code_stream.hpp"

namespace tailrace::trz {
namespace {

constexpr std::size_t kDictionarySlack = 64;
constexpr std::size_t kDictionaryHeadBytesMax = 128;
constexpr std::size_t kDictionaryWordsMax = 65536;
constexpr std::size_t kWordsOfOneByteMax = 256;
/// Least number of values per word.
constexpr std::size_t kValuesPerWordMin = 4;
/// Ranks are coded if their entropy is within this multiple of the size to beat. Prediction and
/// zstd shrink them further, seldom by more.
constexpr double kEntropyWithin = 3;
/// Words are counted only if among so many scattered values at most this share is distinct.
constexpr std::size_t kScattered = 4096;
constexpr double kDistinctMax = 0.6;

/// Ranks of values by an open hash table. Raw: unsigned integer as wide as the values.
template <class Raw>
class Ranks {
 public:
  struct Entry {
    Raw value;
    std::uint32_t rank;  ///< Plus one; 0: the entry is free.
  };

  /// False if out of memory. At most n_max values may be added.
  bool prepare(std::size_t n_max, Workspace& workspace) {
    const std::size_t n_entries = std::bit_ceil(2 * n_max + 2);
    entries_ = workspace.area<Entry>(Slot::vocabulary, n_entries + n_max / 2 + 1);
    if (entries_ == nullptr) return false;
    std::fill_n(entries_, n_entries, Entry{0, 0});
    mask_ = n_entries - 1;
    n_max_ = n_max;
    n_words_ = 0;
    return true;
  }

  /// Add a value. False if there are too many distinct ones.
  bool add(Raw value) {
    Entry& entry = entry_of(value);
    if (entry.rank != 0) return true;
    if (n_words_ == n_max_) return false;
    entry = {value, static_cast<std::uint32_t>(++n_words_)};
    return true;
  }

  std::size_t size() const { return n_words_; }

  /// Write the words to `words`, in the order of their keys, and number them in this order.
  template <class Key>
  void sort(Raw* words, Key key) {
    std::size_t n = 0;
    for (std::size_t i = 0; i <= mask_; ++i) {
      if (entries_[i].rank != 0) words[n++] = entries_[i].value;
    }
    std::sort(words, words + n, [&](Raw a, Raw b) { return key(a) < key(b); });
    for (std::size_t i = 0; i < n; ++i) {
      entry_of(words[i]).rank = static_cast<std::uint32_t>(i + 1);
    }
  }

  std::size_t rank(Raw value) { return entry_of(value).rank - 1; }

 private:
  Entry& entry_of(Raw value) {
    // The high bits of the product depend on all bits of the value; floats often end in zeros.
    std::size_t at =
        static_cast<std::size_t>((static_cast<std::uint64_t>(value) * 0x9E3779B97F4A7C15ULL) >>
                                 (64 - std::bit_width(mask_)));
    for (; entries_[at].rank != 0 && entries_[at].value != value; at = (at + 1) & mask_) {
    }
    return entries_[at];
  }

  Entry* entries_ = nullptr;
  std::size_t mask_ = 0;
  std::size_t n_max_ = 0;
  std::size_t n_words_ = 0;
};

/// Unsigned integer in the order of the values.
template <class Raw>
Raw sorting_key(Raw raw, DType dtype) {
  constexpr Raw sign = Raw{1} << (8 * sizeof(Raw) - 1);
  if (is_floating(dtype)) return (raw & sign) != 0 ? static_cast<Raw>(~raw) : raw | sign;
  return dtype == DType::u32 || dtype == DType::u64 ? raw : raw ^ sign;
}

ChunkHead head_of_words(const ChunkHead& head, std::size_t n_words) {
  ChunkHead words = head;
  words.extents = {1, 1, 1, n_words};
  words.n_values = n_words;
  return words;
}

ChunkHead head_of_ranks(const ChunkHead& head, std::size_t n_words) {
  ChunkHead ranks = head;
  ranks.dtype = n_words <= kWordsOfOneByteMax ? DType::u8 : DType::u16;
  return ranks;
}

/// The body of an exact chunk, behind its head.
std::span<const std::uint8_t> body_of(const ChunkHead& head, std::span<const std::uint8_t> chunk) {
  std::uint8_t bytes[kDictionaryHeadBytesMax];
  ChunkWriter measure(bytes);
  write_head(head, measure);
  return chunk.subspan(measure.n_written());
}

template <class Raw>
ExactAttempt encode_as_ranks(const ChunkHead& head, std::span<const std::byte> bytes,
                             std::size_t to_beat, const EncodeExact& encode_exact,
                             Workspace& workspace) {
  const std::size_t n = head.n_values;
  const auto* values = reinterpret_cast<const Raw*>(bytes.data());
  Ranks<Raw> ranks;
  const std::size_t n_words_max = std::min(kDictionaryWordsMax, n / kValuesPerWordMin);
  if (n_words_max < 2) return {};
  if (n > kScattered) {
    if (!ranks.prepare(kScattered, workspace)) return {{}, true};
    for (std::size_t k = 0; k < kScattered; ++k) {
      ranks.add(values[std::min(k * (n / kScattered) + k % 7, n - 1)]);
    }
    if (static_cast<double>(ranks.size()) > kDistinctMax * kScattered) return {};
  }
  if (!ranks.prepare(n_words_max, workspace)) return {{}, true};
  for (std::size_t i = 0; i < n; ++i) {
    if (!ranks.add(values[i])) return {};
  }
  const std::size_t n_words = ranks.size();
  if (n_words < 2) return {};
  const ChunkHead word_head = head_of_words(head, n_words);
  const ChunkHead rank_head = head_of_ranks(head, n_words);
  const std::size_t rank_bytes = dtype_bytes(rank_head.dtype);
  auto* area = workspace.area<std::byte>(
      Slot::ranks, n * rank_bytes + n_words * sizeof(Raw) + 2 * kDictionarySlack);
  const std::size_t room = 2 * kDictionaryHeadBytesMax + to_beat;
  auto* chunk = workspace.area<std::uint8_t>(Slot::dictionary, room + kDictionarySlack);
  if (area == nullptr || chunk == nullptr) return {{}, true};
  auto* words = reinterpret_cast<Raw*>(area);
  ranks.sort(words, [&](Raw raw) { return sorting_key(raw, head.dtype); });
  std::byte* to =
      area + (n_words * sizeof(Raw) + kDictionarySlack) / kDictionarySlack * kDictionarySlack;
  auto* counts = workspace.area<std::uint32_t>(Slot::sample, n_words);
  if (counts == nullptr) return {{}, true};
  std::fill_n(counts, n_words, 0U);
  for (std::size_t i = 0; i < n; ++i) {
    const std::size_t rank = ranks.rank(values[i]);
    ++counts[rank];
    std::memcpy(to + i * rank_bytes, &rank, rank_bytes);
  }
  double bits = static_cast<double>(n) * log2_of(static_cast<double>(n));
  for (std::size_t k = 0; k < n_words; ++k) bits -= counts[k] * log2_of(counts[k]);
  if (bits / 8 > kEntropyWithin * static_cast<double>(to_beat)) return {};
  ChunkWriter out({chunk, room});
  write_head(head, out);
  out.number(static_cast<std::uint8_t>(ExactForm::dictionary));
  out.varint(n_words);
  const auto add = [&](const ChunkHead& part_head, std::span<const std::byte> part) {
    const ExactAttempt attempt = encode_exact(part_head, part, to_beat);
    if (attempt.memory_out || attempt.chunk.empty()) return attempt;
    const std::span<const std::uint8_t> body = body_of(part_head, attempt.chunk);
    if (out.n_written() + body.size() + kDictionaryHeadBytesMax > room) return ExactAttempt{};
    out.varint(body.size());
    out.bytes(body.data(), body.size());
    return attempt;
  };
  const std::span<const std::byte> word_bytes(area, n_words * sizeof(Raw));
  const ExactAttempt ranks_added = add(rank_head, {to, n * rank_bytes});
  if (ranks_added.chunk.empty()) return ranks_added;
  const ExactAttempt words_added = add(word_head, word_bytes);
  if (words_added.chunk.empty()) return words_added;
  if (out.failed() || out.n_written() >= to_beat) return {};
  return {{chunk, out.n_written()}, false};
}

template <class Raw>
DecodeFailure decode_from_ranks(ChunkReader& in, const ChunkHead& head, Raw* values,
                                const DecodeExact& decode_exact, Workspace& workspace) {
  const std::size_t n = head.n_values;
  const std::uint64_t n_read = in.varint();
  if (in.failed() || n_read < 2 || n_read > kDictionaryWordsMax || n_read > n) {
    return DecodeFailure::corrupt;
  }
  const auto n_words = static_cast<std::size_t>(n_read);
  const ChunkHead word_head = head_of_words(head, n_words);
  const ChunkHead rank_head = head_of_ranks(head, n_words);
  const std::size_t rank_bytes = dtype_bytes(rank_head.dtype);
  auto* words = workspace.area<Raw>(Slot::vocabulary, n_words + kDictionarySlack);
  auto* ranks = workspace.area<std::byte>(Slot::ranks, n * rank_bytes + kDictionarySlack);
  if (words == nullptr || ranks == nullptr) return DecodeFailure::memory_out;
  const auto take = [&](const ChunkHead& part_head, std::span<std::byte> part) {
    const std::uint64_t n_bytes = in.varint();
    const std::uint8_t* bytes =
        n_bytes > in.rest().size() ? nullptr : in.take(static_cast<std::size_t>(n_bytes));
    if (bytes == nullptr) return DecodeFailure::corrupt;
    ChunkReader body({bytes, static_cast<std::size_t>(n_bytes)});
    const DecodeFailure failure = decode_exact(body, part_head, part);
    if (failure == DecodeFailure::none && !body.at_end()) return DecodeFailure::corrupt;
    return failure;
  };
  DecodeFailure failure = take(rank_head, {ranks, n * rank_bytes});
  if (failure != DecodeFailure::none) return failure;
  failure = take(word_head, {reinterpret_cast<std::byte*>(words), n_words * sizeof(Raw)});
  if (failure != DecodeFailure::none) return failure;
  const auto look_up = [&](const auto* rank) {
    std::size_t greatest = 0;
    for (std::size_t i = 0; i < n; ++i) greatest = std::max<std::size_t>(greatest, rank[i]);
    if (greatest >= n_words) return DecodeFailure::corrupt;
    for (std::size_t i = 0; i < n; ++i) values[i] = words[rank[i]];
    return DecodeFailure::none;
  };
  return rank_bytes == 1 ? look_up(reinterpret_cast<const std::uint8_t*>(ranks))
                         : look_up(reinterpret_cast<const std::uint16_t*>(ranks));
}

}  // namespace

ExactAttempt encode_dictionary_chunk(const ChunkHead& head, std::span<const std::byte> values,
                                     std::size_t to_beat, const EncodeExact& encode_exact,
                                     Workspace& workspace) {
  if (dtype_bytes(head.dtype) == 8) {
    return encode_as_ranks<std::uint64_t>(head, values, to_beat, encode_exact, workspace);
  }
  return encode_as_ranks<std::uint32_t>(head, values, to_beat, encode_exact, workspace);
}

DecodeFailure decode_dictionary(ChunkReader& in, const ChunkHead& head, std::span<std::byte> values,
                                const DecodeExact& decode_exact, Workspace& workspace) {
  if (dtype_bytes(head.dtype) == 8) {
    return decode_from_ranks(in, head, reinterpret_cast<std::uint64_t*>(values.data()),
                             decode_exact, workspace);
  }
  return decode_from_ranks(in, head, reinterpret_cast<std::uint32_t*>(values.data()), decode_exact,
                           workspace);
}

}  // namespace tailrace::trz
