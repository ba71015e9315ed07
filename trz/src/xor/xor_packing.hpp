// Bit packing of words, for the kernels only: every function has internal linkage.
//
// Bits are packed lowest first in little-endian bytes. A group is 8 words, so that a group of width
// w has w bytes.

#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "xor/xor_kernels.hpp"

namespace tailrace::neighbour_xor::XOR_BUILD {
namespace {

inline std::uint64_t load_u64(const std::uint8_t* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}
inline void store_u64(std::uint8_t* to, std::uint64_t word) { std::memcpy(to, &word, sizeof word); }

/// Words of a block as their type.
template <class Word>
Word* words_of(BlockWords& block) {
  if constexpr (sizeof(Word) == 4) {
    return block.narrow;
  } else {
    return block.wide;
  }
}
template <class Word>
const Word* words_of(const BlockWords& block) {
  return words_of<Word>(const_cast<BlockWords&>(block));
}

/// Codes of widths, and the widths that the encoder uses. Code 31 of u32 is 32, 57 of u64 is 64.
template <class Word>
struct Widths;
template <>
struct Widths<std::uint32_t> {
  static constexpr unsigned kCodeBits = 5;
  static constexpr unsigned kPackedMax =
      29;  ///< Greatest width of which pairs fit 64 bits at any bit of a byte.
  static constexpr unsigned kSingleMax = 30;  ///< Greatest width with a code, except 32.
  static unsigned of(std::uint32_t word) {
    return word == 0 ? 0 : 32 - static_cast<unsigned>(__builtin_clz(word));
  }
  static unsigned trailing(std::uint32_t word) {
    return static_cast<unsigned>(__builtin_ctz(word));
  }
};
template <>
struct Widths<std::uint64_t> {
  static constexpr unsigned kCodeBits = 6;
  static constexpr unsigned kPackedMax = 56;  ///< Greatest width that fits at any bit of a byte.
  static constexpr unsigned kSingleMax = 56;
  static unsigned of(std::uint64_t word) {
    return word == 0 ? 0 : 64 - static_cast<unsigned>(__builtin_clzll(word));
  }
  static unsigned trailing(std::uint64_t word) {
    return static_cast<unsigned>(__builtin_ctzll(word));
  }
};

/// Width that the encoder uses for `needed` bits if it packs at most `most`.
template <class Word>
unsigned given_width(unsigned needed, unsigned most) {
  return needed > most ? 8 * sizeof(Word) : needed;
}

/// Writes bits in sequence, lowest first, starting at bit `n_before` < 8 of the first byte.
class BitWriter {
 public:
  explicit BitWriter(std::uint8_t* out, unsigned n_before = 0) : out_(out), n_held_(n_before) {}
  /// @param n  at most 56.
  void put(std::uint64_t bits, unsigned n) {
    held_ |= bits << n_held_;
    store_u64(out_, held_);
    n_held_ += n;
    const unsigned n_whole = n_held_ >> 3;  // 0..7
    out_ += n_whole;
    held_ >>= 8 * n_whole;
    n_held_ &= 7;
  }
  /// @param n  at most 64. Branch-free, since the two cases are unpredictable.
  void put_any(std::uint64_t bits, unsigned n) {
    const std::uint64_t low = held_ | bits << n_held_;
    const std::uint64_t high = (bits >> 1) >> (63 - n_held_);
    store_u64(out_, low);
    const unsigned n_now = n_held_ + n;
    const unsigned n_whole = n_now >> 3;  // 0..8
    out_ += n_whole;
    held_ = n_whole == 8 ? high : low >> (8 * n_whole & 63);
    n_held_ = n_now & 7;
  }
  /// Append what `other` wrote from `begin` on. `other` must have started at the bit of its first
  /// byte at which this writer ends.
  void append(const std::uint8_t* begin, const BitWriter& other) {
    const auto n_whole = static_cast<std::size_t>(other.out_ - begin);
    const std::uint64_t held = held_;
    held_ = other.held_;
    if (n_whole == 0) {
      held_ |= held;
    } else {
      std::memcpy(out_, begin, n_whole);
      *out_ |= static_cast<std::uint8_t>(held);
    }
    out_ += n_whole;
    n_held_ = other.n_held_;
    *out_ = static_cast<std::uint8_t>(held_);
  }
  std::uint8_t* end() const { return out_ + (n_held_ > 0 ? 1 : 0); }

 private:
  std::uint8_t* out_;
  std::uint64_t held_ = 0;
  unsigned n_held_;
};

/// Pack eight words, shifted right by `shift`, in `width` bits each; may write kSlackBytes too
/// many.
inline void pack_group(const std::uint64_t* words, unsigned shift, unsigned width,
                       std::uint8_t* out) {
  if (width > Widths<std::uint64_t>::kPackedMax) {
    for (std::size_t i = 0; i < kGroupValues; ++i) store_u64(out + 8 * i, words[i] >> shift);
    return;
  }
  BitWriter bits(out);
  for (std::size_t i = 0; i < kGroupValues; ++i) bits.put(words[i] >> shift, width);
}

#if defined(__AVX2__)

/// Per width: byte positions of a group's four pairs in two loads of 16 bytes, and their shifts.
struct PairTable {
  alignas(32) std::uint8_t bytes[30][32];
  alignas(32) std::uint64_t shifts[30][4];
};

constexpr PairTable make_pair_table() {
  PairTable table{};
  for (unsigned width = 0; width < 30; ++width) {
    for (unsigned pair = 0; pair < 4; ++pair) {
      const unsigned bit = 2 * width * pair;
      const unsigned first = pair < 2 ? bit / 8 : bit / 8 - width / 2;  // Second load: +width / 2.
      for (unsigned byte = 0; byte < 8; ++byte) {
        table.bytes[width][8 * pair + byte] = static_cast<std::uint8_t>(first + byte);
      }
      table.shifts[width][pair] = bit % 8;
    }
  }
  return table;
}
constexpr PairTable kPairs = make_pair_table();

/// Per width: shifts that place the pairs of a group in two halves of 16 bytes. The second half
/// starts at byte width / 2. If the width is odd, both halves share that byte.
struct HalfTable {
  alignas(32) std::uint64_t firsts[30][4];        ///< Left shifts, first pair of each half.
  alignas(32) std::uint64_t seconds[30][4];       ///< Left shifts, second pair, low 8 bytes.
  alignas(32) std::uint64_t seconds_high[30][4];  ///< Right shifts, second pair, high 8 bytes.
  alignas(16) std::uint8_t shared[30][16];        ///< Selects the byte that both halves write.
};

constexpr HalfTable make_half_table() {
  HalfTable table{};
  for (unsigned width = 0; width < 30; ++width) {
    for (std::size_t half = 0; half < 2; ++half) {
      const unsigned start = half == 1 ? 4 * (width % 2) : 0;
      table.firsts[width][2 * half] = start;
      table.firsts[width][2 * half + 1] = 64;  // 0: the high 8 bytes are the second pair's.
      table.seconds[width][2 * half] = start + 2 * width;
      table.seconds[width][2 * half + 1] = 64;
      table.seconds_high[width][2 * half] = 64;
      table.seconds_high[width][2 * half + 1] = 64 - start - 2 * width;
    }
    table.shared[width][0] = static_cast<std::uint8_t>(width / 2);
    for (unsigned byte = 1; byte < 16; ++byte) table.shared[width][byte] = 0x80;
  }
  return table;
}
constexpr HalfTable kHalves = make_half_table();

inline __m256i load_entry(const void* entry) {
  return _mm256_load_si256(static_cast<const __m256i*>(entry));
}

inline void pack_group(const std::uint32_t* words, unsigned shift, unsigned width,
                       std::uint8_t* out) {
  const __m256i v = _mm256_srl_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(words)),
                                     _mm_cvtsi32_si128(static_cast<int>(shift)));
  if (width > Widths<std::uint32_t>::kPackedMax) {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), v);
    return;
  }
  const __m256i odd =
      _mm256_sll_epi64(_mm256_srli_epi64(v, 32), _mm_cvtsi32_si128(static_cast<int>(width)));
  const __m256i even = _mm256_and_si256(v, _mm256_set1_epi64x(0xFFFFFFFF));
  const __m256i pairs = _mm256_or_si256(even, odd);
  const __m256i seconds = _mm256_shuffle_epi32(pairs, 0xEE);
  const __m256i halves = _mm256_or_si256(
      _mm256_sllv_epi64(pairs, load_entry(kHalves.firsts[width])),
      _mm256_or_si256(_mm256_sllv_epi64(seconds, load_entry(kHalves.seconds[width])),
                      _mm256_srlv_epi64(seconds, load_entry(kHalves.seconds_high[width]))));
  const __m128i first = _mm256_castsi256_si128(halves);
  const __m128i shared = _mm_shuffle_epi8(
      first, _mm_load_si128(reinterpret_cast<const __m128i*>(kHalves.shared[width])));
  const __m128i second = _mm_or_si128(_mm256_extracti128_si256(halves, 1), shared);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), first);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out + width / 2), second);
}

inline void unpack_group(const std::uint8_t* in, unsigned width, unsigned shift,
                         std::uint32_t* words) {
  __m256i made;
  if (width < 30) {
    const __m128i low = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in));
    const __m128i high = _mm_loadu_si128(reinterpret_cast<const __m128i*>(in + width / 2));
    const __m256i bytes =
        _mm256_shuffle_epi8(_mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1),
                            load_entry(kPairs.bytes[width]));
    const __m256i pairs = _mm256_srlv_epi64(bytes, load_entry(kPairs.shifts[width]));
    const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
    const __m256i first = _mm256_and_si256(pairs, _mm256_set1_epi64x(static_cast<long long>(mask)));
    const __m256i second =
        _mm256_and_si256(_mm256_sll_epi64(pairs, _mm_cvtsi32_si128(32 - static_cast<int>(width))),
                         _mm256_slli_epi64(_mm256_set1_epi64x(static_cast<long long>(mask)), 32));
    made = _mm256_or_si256(first, second);
  } else if (width == 32) {
    made = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(in));
  } else {
    for (unsigned i = 0; i < kGroupValues; ++i) {
      const std::uint64_t bits = load_u64(in + (i * width >> 3)) >> (i * width & 7);
      words[i] = static_cast<std::uint32_t>(bits & ((std::uint64_t{1} << width) - 1));
    }
    made = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(words));
  }
  made = _mm256_sll_epi32(made, _mm_cvtsi32_si128(static_cast<int>(shift)));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(words), made);
}

#else

inline void pack_group(const std::uint32_t* words, unsigned shift, unsigned width,
                       std::uint8_t* out) {
  if (width > Widths<std::uint32_t>::kPackedMax) {
    for (std::size_t i = 0; i < kGroupValues; ++i) {
      const std::uint32_t word = words[i] >> shift;
      std::memcpy(out + sizeof word * i, &word, sizeof word);
    }
    return;
  }
  const auto pair = [&](std::size_t k) {
    return words[2 * k] >> shift | static_cast<std::uint64_t>(words[2 * k + 1] >> shift) << width;
  };
  std::uint64_t held = pair(0);
  store_u64(out, held);
  unsigned n_held = 2 * width;
  for (std::size_t k = 1; k < kGroupValues / 2; ++k) {
    const unsigned n_whole = n_held >> 3;
    out += n_whole;
    held = (held >> (8 * n_whole)) | pair(k) << (n_held & 7);
    store_u64(out, held);
    n_held = (n_held & 7) + 2 * width;
  }
}
inline void unpack_group(const std::uint8_t* in, unsigned width, unsigned shift,
                         std::uint32_t* words) {
  if (width == 32) {
    for (std::size_t i = 0; i < kGroupValues; ++i) {
      std::uint32_t word;
      std::memcpy(&word, in + sizeof word * i, sizeof word);
      words[i] = word << shift;
    }
    return;
  }
  const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
  for (unsigned i = 0; i < kGroupValues; ++i) {
    const std::uint64_t bits = load_u64(in + (i * width >> 3)) >> (i * width & 7);
    words[i] = static_cast<std::uint32_t>(bits & mask) << shift;
  }
}

#endif

inline void unpack_group(const std::uint8_t* in, unsigned width, unsigned shift,
                         std::uint64_t* words) {
  if (width == 64) {
    for (std::size_t i = 0; i < kGroupValues; ++i) words[i] = load_u64(in + 8 * i) << shift;
    return;
  }
  const std::uint64_t mask = (std::uint64_t{1} << width) - 1;
  for (unsigned i = 0; i < kGroupValues; ++i) {
    words[i] = (load_u64(in + (i * width >> 3)) >> (i * width & 7) & mask) << shift;
  }
}

}  // namespace
}  // namespace tailrace::neighbour_xor::XOR_BUILD
