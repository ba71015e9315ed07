// Bit planes of 64 values: the part of group_kernels.cpp that turns bytes into planes and back.
//
// Only group_kernels.cpp includes this header, once per instruction set. Plane b of 64 values is a
// little-endian 64-bit word whose bit i is bit b of value i. The planes of one byte of every value
// result from two 8 x 8 transpositions: of the bits in each 8 bytes, then of the bytes.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "trz/kernels/group_bytes.hpp"
#include "trz/kernels/isa.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#endif

#if defined(__AVX512VBMI2__) && defined(__AVX512VPOPCNTDQ__) && defined(__AVX512CD__) && \
    defined(__GFNI__)
#define TRZ_GROUP_AVX512 1
#endif

namespace tailrace::trz::TRZ_ISA {
namespace {

constexpr std::size_t kPlaneBytes = 8;

#if defined(TRZ_GROUP_AVX512)

struct alignas(64) ByteTable {
  std::uint8_t at[64];
};

/// Permutation that transposes 8 x 8 bytes: byte 8 j + p goes to 8 p + j, or to 8 p + (7 - j) if
/// is_reversed.
constexpr ByteTable byte_transpose(bool is_reversed) {
  ByteTable table = {};
  for (std::size_t j = 0; j < 8; ++j) {
    for (std::size_t p = 0; p < 8; ++p) {
      const std::size_t to = is_reversed ? 8 * j + (7 - p) : 8 * p + j;
      const std::size_t from = is_reversed ? 8 * p + j : 8 * j + p;
      table.at[to] = static_cast<std::uint8_t>(from);
    }
  }
  return table;
}

/// Indices of byte 0 of codes 0..31, in two registers of 16 codes. Each 8 are reversed, as the bit
/// matrix instruction needs them.
constexpr ByteTable low_bytes_reversed() {
  ByteTable table = {};
  for (std::size_t i = 0; i < 64; ++i) {
    table.at[i] = static_cast<std::uint8_t>(4 * ((i & 24) | (7 - (i & 7))));
  }
  return table;
}

constexpr ByteTable kToPlanes = byte_transpose(false);
constexpr ByteTable kFromPlanes = byte_transpose(true);
constexpr ByteTable kLowBytesReversed = low_bytes_reversed();
constexpr long long kDiagonal = static_cast<long long>(0x8040201008040201U);

/// 64 codes in registers.
struct Group {
  __m512i at[4];
};

inline __m512i table_of(const ByteTable& table) { return _mm512_load_si512(table.at); }

inline Group load_group(const void* codes) {
  const auto* from = static_cast<const std::uint8_t*>(codes);
  return {{_mm512_loadu_si512(from), _mm512_loadu_si512(from + 64), _mm512_loadu_si512(from + 128),
           _mm512_loadu_si512(from + 192)}};
}

/// Planes 8 j .. 8 j + 7 of 64 words; j = 0..3.
inline __m512i planes_of(const Group& words, std::size_t j) {
  const __m512i from =
      _mm512_add_epi8(table_of(kLowBytesReversed), _mm512_set1_epi8(static_cast<char>(j)));
  const __m512i bytes = _mm512_mask_blend_epi8(
      0xFFFFFFFF00000000U, _mm512_permutex2var_epi8(words.at[0], from, words.at[1]),
      _mm512_permutex2var_epi8(words.at[2], from, words.at[3]));
  const __m512i bits = _mm512_gf2p8affine_epi64_epi8(_mm512_set1_epi64(kDiagonal), bytes, 0);
  return _mm512_permutexvar_epi8(table_of(kToPlanes), bits);
}

/// Write n planes; up to 56 bytes more are overwritten.
inline std::uint8_t* put_planes(const Group& words, std::size_t n_planes, std::uint8_t* planes) {
  for (std::size_t j = 0; 8 * j < n_planes; ++j) {
    _mm512_storeu_si512(planes + 64 * j, planes_of(words, j));
  }
  return planes + kPlaneBytes * n_planes;
}

/// The 64 bytes that n <= 8 planes represent.
inline __m512i bytes_of_planes(const std::uint8_t* planes, std::size_t n_planes) {
  const auto present = static_cast<__mmask8>((1U << n_planes) - 1);
  const __m512i bits = _mm512_maskz_loadu_epi64(present, planes);
  return _mm512_gf2p8affine_epi64_epi8(_mm512_set1_epi64(kDiagonal),
                                       _mm512_permutexvar_epi8(table_of(kFromPlanes), bits), 0);
}

template <int kQuarter>
inline __m512i quarter_of(__m512i bytes) {
  return _mm512_cvtepu8_epi32(_mm512_extracti32x4_epi32(bytes, kQuarter));
}

/// The 64 words that n <= 32 planes represent.
inline Group words_of_planes(const std::uint8_t* planes, std::size_t n_planes) {
  const __m512i low = bytes_of_planes(planes, n_planes < 8 ? n_planes : 8);
  Group words = {{quarter_of<0>(low), quarter_of<1>(low), quarter_of<2>(low), quarter_of<3>(low)}};
  for (std::size_t j = 1; 8 * j < n_planes; ++j) {
    const std::size_t n = n_planes - 8 * j;
    const __m512i bytes = bytes_of_planes(planes + 64 * j, n < 8 ? n : 8);
    const __m128i shift = _mm_cvtsi32_si128(static_cast<int>(8 * j));
    words.at[0] = _mm512_or_si512(words.at[0], _mm512_sll_epi32(quarter_of<0>(bytes), shift));
    words.at[1] = _mm512_or_si512(words.at[1], _mm512_sll_epi32(quarter_of<1>(bytes), shift));
    words.at[2] = _mm512_or_si512(words.at[2], _mm512_sll_epi32(quarter_of<2>(bytes), shift));
    words.at[3] = _mm512_or_si512(words.at[3], _mm512_sll_epi32(quarter_of<3>(bytes), shift));
  }
  return words;
}

#else

#if defined(TRZ_GROUP_VECTORS)

/// The eight planes of 64 bytes.
inline void planes_of_bytes(const Bytes& bytes, std::uint8_t* planes) {
  for (std::size_t i = 0; i < kGroupCodes; i += kVectorBytes) {
    Vector rest = load(bytes.at + i);
    for (std::size_t p = 8; p-- > 0;) {
      const unsigned bits = top_bits(rest);
      std::memcpy(planes + kPlaneBytes * p + i / 8, &bits, kVectorBytes / 8);
      rest = double_bytes(rest);
    }
  }
}

inline Vector transpose_bits(Vector w) {
  Vector t = both(differ(w, right_64(w, 7)), words_of(0x00AA00AA00AA00AA));
  w = differ(w, differ(t, left_64(t, 7)));
  t = both(differ(w, right_64(w, 14)), words_of(0x0000CCCC0000CCCC));
  w = differ(w, differ(t, left_64(t, 14)));
  t = both(differ(w, right_64(w, 28)), words_of(0x00000000F0F0F0F0));
  return differ(w, differ(t, left_64(t, 28)));
}

/// The 64 bytes that n <= 8 planes represent.
inline void bytes_of_planes(const std::uint8_t* planes, std::size_t n_planes, Bytes& bytes) {
  alignas(64) std::uint64_t words[8] = {};
  std::memcpy(words, planes, kPlaneBytes * n_planes);
  const auto row = [&](std::size_t p) {
    return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(words + p));
  };
  const __m128i a = _mm_unpacklo_epi8(row(0), row(1));
  const __m128i b = _mm_unpacklo_epi8(row(2), row(3));
  const __m128i c = _mm_unpacklo_epi8(row(4), row(5));
  const __m128i d = _mm_unpacklo_epi8(row(6), row(7));
  const __m128i low[2] = {_mm_unpacklo_epi16(a, b), _mm_unpackhi_epi16(a, b)};
  const __m128i high[2] = {_mm_unpacklo_epi16(c, d), _mm_unpackhi_epi16(c, d)};
  for (std::size_t i = 0; i < 2; ++i) {
    const __m128i first = _mm_unpacklo_epi32(low[i], high[i]);
    const __m128i second = _mm_unpackhi_epi32(low[i], high[i]);
    std::uint8_t* to = bytes.at + 32 * i;
#if defined(__AVX2__)
    store(to, transpose_bits(_mm256_set_m128i(second, first)));
#else
    store(to, transpose_bits(first));
    store(to + 16, transpose_bits(second));
#endif
  }
}

#else

/// Transpose 8 x 8 bits: move bit p of byte j to bit j of byte p.
inline std::uint64_t transpose_bits(std::uint64_t w) {
  std::uint64_t t = (w ^ (w >> 7)) & 0x00AA00AA00AA00AAU;
  w ^= t ^ (t << 7);
  t = (w ^ (w >> 14)) & 0x0000CCCC0000CCCCU;
  w ^= t ^ (t << 14);
  t = (w ^ (w >> 28)) & 0x00000000F0F0F0F0U;
  return w ^ t ^ (t << 28);
}

/// Swap the fields that `mask` selects in b with those `shift` bits higher in a.
inline void swap_fields(std::uint64_t& a, std::uint64_t& b, int shift, std::uint64_t mask) {
  const std::uint64_t t = ((a >> shift) ^ b) & mask;
  b ^= t;
  a ^= t << shift;
}

/// Transpose 8 x 8 bytes: move byte p of word j to byte j of word p.
inline void transpose_bytes(std::uint64_t* w) {
  for (std::size_t i = 0; i < 4; ++i) swap_fields(w[i], w[i + 4], 32, 0x00000000FFFFFFFFU);
  for (std::size_t i = 0; i < 8; i += 4) {
    swap_fields(w[i], w[i + 2], 16, 0x0000FFFF0000FFFFU);
    swap_fields(w[i + 1], w[i + 3], 16, 0x0000FFFF0000FFFFU);
  }
  for (std::size_t i = 0; i < 8; i += 2) swap_fields(w[i], w[i + 1], 8, 0x00FF00FF00FF00FFU);
}

inline void planes_of_bytes(const Bytes& bytes, std::uint8_t* planes) {
  std::uint64_t words[8];
  std::memcpy(words, bytes.at, 64);
  for (std::uint64_t& word : words) word = transpose_bits(word);
  transpose_bytes(words);
  std::memcpy(planes, words, 64);
}

inline void bytes_of_planes(const std::uint8_t* planes, std::size_t n_planes, Bytes& bytes) {
  std::uint64_t words[8] = {};
  std::memcpy(words, planes, kPlaneBytes * n_planes);
  transpose_bytes(words);
  for (std::uint64_t& word : words) word = transpose_bits(word);
  std::memcpy(bytes.at, words, 64);
}

#endif

/// Write n planes; up to 56 bytes more are overwritten.
inline std::uint8_t* put_planes(const std::uint32_t* words, std::size_t n_planes,
                                std::uint8_t* planes) {
  for (std::size_t j = 0; 8 * j < n_planes; ++j) {
    Bytes bytes;
    byte_of_words(words, j, bytes);
    planes_of_bytes(bytes, planes + 64 * j);
  }
  return planes + kPlaneBytes * n_planes;
}

/// The 64 words that n <= 32 planes represent.
inline void words_of_planes(const std::uint8_t* planes, std::size_t n_planes,
                            std::uint32_t* words) {
  Bytes bytes;
  bytes_of_planes(planes, n_planes < 8 ? n_planes : 8, bytes);
  for (std::size_t i = 0; i < kGroupCodes; ++i) words[i] = bytes.at[i];
  for (std::size_t j = 1; 8 * j < n_planes; ++j) {
    const std::size_t n = n_planes - 8 * j;
    bytes_of_planes(planes + 64 * j, n < 8 ? n : 8, bytes);
    for (std::size_t i = 0; i < kGroupCodes; ++i) {
      words[i] |= static_cast<std::uint32_t>(bytes.at[i]) << (8 * j);
    }
  }
}

#endif

}  // namespace
}  // namespace tailrace::trz::TRZ_ISA
