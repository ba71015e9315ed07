// Widths of words and the codes of widths, for the kernels only: every function has internal
// linkage. Both builds give the same numbers; AVX2's counts leading zeros through the exponent of a
// float.

#pragma once

#include "xor/xor_kernels.hpp"
#include "xor/xor_packing.hpp"

namespace tailrace::neighbour_xor::XOR_BUILD {

// Functions shared by the kernel files of one build (xor_kernels.hpp).

template <class Word>
std::size_t pack_block(const BlockWords& block, std::size_t n, std::uint8_t* out);
template <class Word>
std::uint64_t block_cost(const BlockWords& block, std::size_t n);
template <class Word>
std::size_t unpack_block(const std::uint8_t* in, std::size_t n_in, std::size_t n,
                         BlockWords& block);

extern template std::size_t pack_block<std::uint32_t>(const BlockWords&, std::size_t,
                                                      std::uint8_t*);
extern template std::size_t pack_block<std::uint64_t>(const BlockWords&, std::size_t,
                                                      std::uint8_t*);
extern template std::uint64_t block_cost<std::uint32_t>(const BlockWords&, std::size_t);
extern template std::uint64_t block_cost<std::uint64_t>(const BlockWords&, std::size_t);
extern template std::size_t unpack_block<std::uint32_t>(const std::uint8_t*, std::size_t,
                                                        std::size_t, BlockWords&);
extern template std::size_t unpack_block<std::uint64_t>(const std::uint8_t*, std::size_t,
                                                        std::size_t, BlockWords&);

namespace {

/// Repeat a byte eight times.
constexpr std::uint64_t eight_times(unsigned byte) { return 0x0101010101010101U * byte; }

/// Convert eight widths, a byte each, to consecutive codes of kCodeBits.
template <class Word>
std::uint64_t packed_codes(std::uint64_t widths) {
  constexpr unsigned c = Widths<Word>::kCodeBits;
  // A full word's width has the code after the greatest other one.
  constexpr unsigned whole_bit = sizeof(Word) == 4 ? 5 : 6;
  constexpr std::uint64_t less = sizeof(Word) == 4 ? 32 - 31 : 64 - 57;
  std::uint64_t x = widths - (widths >> whole_bit & eight_times(1)) * less;
  x = (x & 0x00FF00FF00FF00FFU) | (x & 0xFF00FF00FF00FF00U) >> (8 - c);
  x = (x & 0x0000FFFF0000FFFFU) | (x & 0xFFFF0000FFFF0000U) >> (16 - 2 * c);
  return (x & 0xFFFFFFFFU) | x >> 32 << 4 * c;
}

/// Inverse of packed_codes(); sets `valid` to false if a code is invalid.
template <class Word>
std::uint64_t unpacked_widths(std::uint64_t codes, bool& valid) {
  constexpr unsigned c = Widths<Word>::kCodeBits;
  constexpr std::uint64_t one = (1U << c) - 1;
  constexpr std::uint64_t two = (1U << 2 * c) - 1;
  constexpr std::uint64_t four = (std::uint64_t{1} << 4 * c) - 1;
  std::uint64_t x = (codes & four) | (codes >> 4 * c & four) << 32;
  x = (x & (two | two << 32)) | (x & (two << 2 * c | two << (32 + 2 * c))) << (16 - 2 * c);
  constexpr std::uint64_t ones = one * 0x0001000100010001U;
  x = (x & ones) | (x & ones << c) << (8 - c);
  if constexpr (sizeof(Word) == 4) {
    return x + ((x + eight_times(1)) >> 5 & eight_times(1));
  } else {
    valid = valid && ((x + eight_times(0x80 - 58)) & eight_times(0x80)) == 0;
    return x + 7 * ((x + eight_times(0x80 - 57)) >> 7 & eight_times(1));
  }
}

/// Sum of `n` widths.
inline std::size_t sum_of(const std::uint8_t* widths, std::size_t n) {
  std::size_t sum = 0;
  std::size_t i = 0;
#if defined(__AVX2__)
  __m256i sums = _mm256_setzero_si256();
  for (; i + 32 <= n; i += 32) {
    const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(widths + i));
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(w, _mm256_setzero_si256()));
  }
  std::uint64_t parts[4];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts), sums);
  for (const std::uint64_t part : parts) sum += part;
#endif
  for (; i < n; ++i) sum += widths[i];
  return sum;
}

/// Write the greater of every two widths; an odd last one is copied. @returns their number.
inline std::size_t greater_of_two(const std::uint8_t* widths, std::size_t n,
                                  std::uint8_t* greater) {
  std::size_t i = 0;
#if defined(__AVX2__)
  const __m256i low = _mm256_set1_epi16(0xFF);
  for (; i + 32 <= n; i += 32) {
    const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(widths + i));
    const __m256i both = _mm256_and_si256(_mm256_max_epu8(w, _mm256_srli_epi16(w, 8)), low);
    const __m128i bytes =
        _mm_packus_epi16(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(greater + i / 2), bytes);
  }
#endif
  for (; i < n; i += 2) {
    const std::uint8_t other = i + 1 < n ? widths[i + 1] : 0;
    greater[i / 2] = widths[i] > other ? widths[i] : other;
  }
  return (n + 1) / 2;
}

/// Sums of the widths of single words: `coded` with a code for each, `from_base` with `base` as
/// minimum.
struct SingleBits {
  std::size_t coded = 0;
  std::size_t from_base = 0;
};

template <class Word>
unsigned coded_width(unsigned width) {
  return given_width<Word>(width, Widths<Word>::kSingleMax);
}

/// @param widths  `n` widths, zero-padded to a multiple of 8.
template <class Word>
SingleBits single_bits(const std::uint8_t* widths, std::size_t n, unsigned base) {
  SingleBits bits;
  std::size_t i = 0;
#if defined(__AVX2__)
  const auto all = [](unsigned byte) { return _mm256_set1_epi8(static_cast<char>(byte)); };
  __m256i coded = _mm256_setzero_si256();
  __m256i from_base = _mm256_setzero_si256();
  for (; i + 32 <= n; i += 32) {
    const __m256i w = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(widths + i));
    const __m256i given = _mm256_blendv_epi8(w, all(8 * sizeof(Word)),
                                             _mm256_cmpgt_epi8(w, all(Widths<Word>::kSingleMax)));
    coded = _mm256_add_epi64(coded, _mm256_sad_epu8(given, _mm256_setzero_si256()));
    from_base = _mm256_add_epi64(
        from_base, _mm256_sad_epu8(_mm256_max_epu8(w, all(base)), _mm256_setzero_si256()));
  }
  std::uint64_t parts[4];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts), coded);
  for (const std::uint64_t part : parts) bits.coded += part;
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(parts), from_base);
  for (const std::uint64_t part : parts) bits.from_base += part;
#endif
  for (; i < n; ++i) {
    bits.coded += coded_width<Word>(widths[i]);
    bits.from_base += widths[i] > base ? widths[i] : base;
  }
  return bits;
}

/// Compute the bits that are set in any word of each group. @returns those of all groups.
template <class Word>
Word plain_ones(const Word* words, std::size_t n_groups, Word* ones) {
  Word all = 0;
  for (std::size_t group = 0; group < n_groups; ++group) {
    const Word* w = words + kGroupValues * group;
    ones[group] = w[0] | w[1] | w[2] | w[3] | w[4] | w[5] | w[6] | w[7];
    all |= ones[group];
  }
  return all;
}

/// Width of a word without `shift` trailing zeros, if at most `most` bits are packed.
template <class Word>
unsigned width_without(unsigned shift, unsigned most, Word word) {
  return given_width<Word>(Widths<Word>::of(static_cast<Word>(word >> shift)), most);
}

#if defined(__AVX2__)

inline __m256i load_vector(const void* from) {
  return _mm256_loadu_si256(static_cast<const __m256i*>(from));
}
inline void store_vector(void* to, __m256i vector) {
  _mm256_storeu_si256(static_cast<__m256i*>(to), vector);
}

inline __m256i or_of_halves_32(__m256i a, __m256i b) {
  return _mm256_or_si256(_mm256_unpacklo_epi32(a, b), _mm256_unpackhi_epi32(a, b));
}
inline __m256i or_of_halves_64(__m256i a, __m256i b) {
  return _mm256_or_si256(_mm256_unpacklo_epi64(a, b), _mm256_unpackhi_epi64(a, b));
}
inline __m256i or_of_halves_128(__m256i a, __m256i b) {
  return _mm256_or_si256(_mm256_permute2x128_si256(a, b, 0x20),
                         _mm256_permute2x128_si256(a, b, 0x31));
}

inline std::uint32_t group_ones(const std::uint32_t* words, std::size_t n_groups,
                                std::uint32_t* ones) {
  std::size_t group = 0;
  __m256i all = _mm256_setzero_si256();
  for (; group + 8 <= n_groups; group += 8) {
    const std::uint32_t* w = words + kGroupValues * group;
    // Transposition that ors what it interleaves.
    const auto two = [w](std::size_t a, std::size_t b) {
      return or_of_halves_32(load_vector(w + 8 * a), load_vector(w + 8 * b));
    };
    const __m256i low = or_of_halves_64(two(0, 1), two(2, 3));
    const __m256i high = or_of_halves_64(two(4, 5), two(6, 7));
    const __m256i eight = or_of_halves_128(low, high);
    all = _mm256_or_si256(all, eight);
    store_vector(ones + group, eight);
  }
  std::uint32_t parts[8];
  store_vector(parts, all);
  std::uint32_t any = plain_ones(words + kGroupValues * group, n_groups - group, ones + group);
  for (const std::uint32_t part : parts) any |= part;
  return any;
}

inline std::uint64_t group_ones(const std::uint64_t* words, std::size_t n_groups,
                                std::uint64_t* ones) {
  std::size_t group = 0;
  __m256i all = _mm256_setzero_si256();
  for (; group + 4 <= n_groups; group += 4) {
    const std::uint64_t* w = words + kGroupValues * group;
    const auto one = [w](std::size_t a) {
      return _mm256_or_si256(load_vector(w + 8 * a), load_vector(w + 8 * a + 4));
    };
    const __m256i four =
        or_of_halves_128(or_of_halves_64(one(0), one(1)), or_of_halves_64(one(2), one(3)));
    all = _mm256_or_si256(all, four);
    store_vector(ones + group, four);
  }
  std::uint64_t parts[4];
  store_vector(parts, all);
  return plain_ones(words + kGroupValues * group, n_groups - group, ones + group) | parts[0] |
         parts[1] | parts[2] | parts[3];
}

/// Widths of eight words, if at most `most` bits are packed.
inline __m256i vector_widths(__m256i words, __m256i most) {
  // Clear the bit below the top one, so that the conversion cannot round up to the next power of 2.
  // A set sign bit gives a width beyond 32.
  const __m256i top = _mm256_andnot_si256(_mm256_srli_epi32(words, 1), words);
  const __m256i exponent = _mm256_srli_epi32(_mm256_castps_si256(_mm256_cvtepi32_ps(top)), 23);
  const __m256i width =
      _mm256_max_epi32(_mm256_sub_epi32(exponent, _mm256_set1_epi32(126)), _mm256_setzero_si256());
  const __m256i whole = _mm256_set1_epi32(32);
  return _mm256_blendv_epi8(width, whole, _mm256_cmpgt_epi32(width, most));
}

inline std::size_t byte_widths(const std::uint32_t* words, std::size_t n, unsigned shift,
                               unsigned most, std::uint8_t* widths) {
  const __m256i mosts = _mm256_set1_epi32(static_cast<int>(most));
  const __m128i by = _mm_cvtsi32_si128(static_cast<int>(shift));
  const __m256i order = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  __m256i sums = _mm256_setzero_si256();
  std::size_t i = 0;
  for (; i + 32 <= n; i += 32) {
    const auto eight = [&](std::size_t k) {
      return vector_widths(_mm256_srl_epi32(load_vector(words + i + 8 * k), by), mosts);
    };
    const __m256i bytes = _mm256_packus_epi16(_mm256_packs_epi32(eight(0), eight(1)),
                                              _mm256_packs_epi32(eight(2), eight(3)));
    sums = _mm256_add_epi64(sums, _mm256_sad_epu8(bytes, _mm256_setzero_si256()));
    store_vector(widths + i, _mm256_permutevar8x32_epi32(bytes, order));
  }
  std::uint64_t parts[4];
  store_vector(parts, sums);
  std::size_t n_bits = parts[0] + parts[1] + parts[2] + parts[3];
  for (; i < n; ++i) {
    widths[i] = static_cast<std::uint8_t>(width_without(shift, most, words[i]));
    n_bits += widths[i];
  }
  return n_bits;
}

#else

template <class Word>
Word group_ones(const Word* words, std::size_t n_groups, Word* ones) {
  return plain_ones(words, n_groups, ones);
}

#endif

/// Write the widths of `n` words as bytes. @returns their sum.
template <class Word>
std::size_t byte_widths(const Word* words, std::size_t n, unsigned shift, unsigned most,
                        std::uint8_t* widths) {
  std::size_t n_bits = 0;
  for (std::size_t i = 0; i < n; ++i) {
    const unsigned width = width_without(shift, most, words[i]);
    widths[i] = static_cast<std::uint8_t>(width);
    n_bits += width;
  }
  return n_bits;
}

}  // namespace
}  // namespace tailrace::neighbour_xor::XOR_BUILD
