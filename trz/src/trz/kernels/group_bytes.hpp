// 64 codes as 64 bytes: the operations that group_portable.hpp and group_planes.hpp use.
//
// One form of the code serves vectors of 16 bytes (SSE2, part of every x86-64) and of 32 bytes
// (AVX2). The other form is plain C++. It uses 64-bit words of eight bytes for loops that compilers
// do not vectorise.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "trz/kernels/group_kernels.hpp"

#if defined(__SSE2__)
#include <immintrin.h>
#define TRZ_GROUP_VECTORS 1
#endif

namespace tailrace::trz::TRZ_ISA {
namespace {

constexpr std::uint64_t kOnes = 0x0101010101010101U;  ///< 1 in every byte.

/// One byte per code.
struct alignas(64) Bytes {
  std::uint8_t at[kGroupCodes];
};

inline std::uint64_t load_word(const void* from) {
  std::uint64_t word = 0;
  std::memcpy(&word, from, sizeof word);
  return word;
}

#if defined(TRZ_GROUP_VECTORS)

#if defined(__AVX2__)
using Vector = __m256i;
inline Vector load(const void* from) {
  return _mm256_loadu_si256(static_cast<const Vector*>(from));
}
inline void store(void* to, Vector a) { _mm256_storeu_si256(static_cast<Vector*>(to), a); }
inline Vector bytes_of(int value) { return _mm256_set1_epi8(static_cast<char>(value)); }
inline Vector words_of(long long value) { return _mm256_set1_epi64x(value); }
inline Vector both(Vector a, Vector b) { return _mm256_and_si256(a, b); }
inline Vector differ(Vector a, Vector b) { return _mm256_xor_si256(a, b); }
inline Vector only_second(Vector a, Vector b) { return _mm256_andnot_si256(a, b); }
inline Vector larger_bytes(Vector a, Vector b) { return _mm256_cmpgt_epi8(a, b); }
inline Vector equal_bytes(Vector a, Vector b) { return _mm256_cmpeq_epi8(a, b); }
inline Vector double_bytes(Vector a) { return _mm256_add_epi8(a, a); }
inline Vector subtract_bytes(Vector a, Vector b) { return _mm256_sub_epi8(a, b); }
inline Vector smaller_bytes(Vector a, Vector b) { return _mm256_min_epu8(a, b); }
inline Vector right(Vector a, int n) { return _mm256_srl_epi32(a, _mm_cvtsi32_si128(n)); }
inline Vector right_signed(Vector a, int n) { return _mm256_sra_epi32(a, _mm_cvtsi32_si128(n)); }
inline Vector left(Vector a, int n) { return _mm256_sll_epi32(a, _mm_cvtsi32_si128(n)); }
inline Vector subtract_words(Vector a, int n) { return _mm256_sub_epi32(a, _mm256_set1_epi32(n)); }
inline Vector right_64(Vector a, int n) { return _mm256_srli_epi64(a, n); }
inline Vector left_64(Vector a, int n) { return _mm256_slli_epi64(a, n); }
inline Vector to_floats(Vector a) { return _mm256_castps_si256(_mm256_cvtepi32_ps(a)); }
inline unsigned top_bits(Vector a) { return static_cast<unsigned>(_mm256_movemask_epi8(a)); }
/// Convert four vectors of 32-bit integers to one of bytes, in order, with signed saturation.
inline Vector narrow(Vector a, Vector b, Vector c, Vector d) {
  const Vector mixed = _mm256_packs_epi16(_mm256_packs_epi32(a, b), _mm256_packs_epi32(c, d));
  return _mm256_permutevar8x32_epi32(mixed, _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7));
}
#else
using Vector = __m128i;
inline Vector load(const void* from) { return _mm_loadu_si128(static_cast<const Vector*>(from)); }
inline void store(void* to, Vector a) { _mm_storeu_si128(static_cast<Vector*>(to), a); }
inline Vector bytes_of(int value) { return _mm_set1_epi8(static_cast<char>(value)); }
inline Vector words_of(long long value) { return _mm_set1_epi64x(value); }
inline Vector both(Vector a, Vector b) { return _mm_and_si128(a, b); }
inline Vector differ(Vector a, Vector b) { return _mm_xor_si128(a, b); }
inline Vector only_second(Vector a, Vector b) { return _mm_andnot_si128(a, b); }
inline Vector larger_bytes(Vector a, Vector b) { return _mm_cmpgt_epi8(a, b); }
inline Vector equal_bytes(Vector a, Vector b) { return _mm_cmpeq_epi8(a, b); }
inline Vector double_bytes(Vector a) { return _mm_add_epi8(a, a); }
inline Vector subtract_bytes(Vector a, Vector b) { return _mm_sub_epi8(a, b); }
inline Vector smaller_bytes(Vector a, Vector b) { return _mm_min_epu8(a, b); }
inline Vector right(Vector a, int n) { return _mm_srl_epi32(a, _mm_cvtsi32_si128(n)); }
inline Vector right_signed(Vector a, int n) { return _mm_sra_epi32(a, _mm_cvtsi32_si128(n)); }
inline Vector left(Vector a, int n) { return _mm_sll_epi32(a, _mm_cvtsi32_si128(n)); }
inline Vector subtract_words(Vector a, int n) { return _mm_sub_epi32(a, _mm_set1_epi32(n)); }
inline Vector right_64(Vector a, int n) { return _mm_srli_epi64(a, n); }
inline Vector left_64(Vector a, int n) { return _mm_slli_epi64(a, n); }
inline Vector to_floats(Vector a) { return _mm_castps_si128(_mm_cvtepi32_ps(a)); }
inline unsigned top_bits(Vector a) { return static_cast<unsigned>(_mm_movemask_epi8(a)); }
inline Vector narrow(Vector a, Vector b, Vector c, Vector d) {
  return _mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
}
#endif

constexpr std::size_t kVectorBytes = sizeof(Vector);
constexpr std::size_t kVectorWords = kVectorBytes / 4;

/// Compute c >> shift of 64 codes as saturated signed bytes.
inline void saturate(const std::int32_t* codes, std::size_t shift, Bytes& bytes) {
  const auto n = static_cast<int>(shift);
  for (std::size_t i = 0; i < kGroupCodes; i += kVectorBytes, codes += kVectorBytes) {
    store(bytes.at + i,
          narrow(right_signed(load(codes), n), right_signed(load(codes + kVectorWords), n),
                 right_signed(load(codes + 2 * kVectorWords), n),
                 right_signed(load(codes + 3 * kVectorWords), n)));
  }
}

/// Extract byte j of 64 words.
inline void byte_of_words(const std::uint32_t* words, std::size_t j, Bytes& bytes) {
  // Shift the byte to the top and back with its sign, so that it does not saturate.
  const int up = static_cast<int>(24 - 8 * j);
  const auto at = [&](std::size_t i) { return right_signed(left(load(words + i), up), 24); };
  for (std::size_t i = 0; i < kGroupCodes; i += kVectorBytes) {
    store(bytes.at + i,
          narrow(at(i), at(i + kVectorWords), at(i + 2 * kVectorWords), at(i + 3 * kVectorWords)));
  }
}

/// Magnitudes of signed bytes, at most 127.
inline void sizes_of(const Bytes& bytes, Bytes& sizes) {
  for (std::size_t i = 0; i < kGroupCodes; i += kVectorBytes) {
    const Vector value = load(bytes.at + i);
    const Vector sign = larger_bytes(bytes_of(0), value);
    const Vector size = subtract_bytes(differ(value, sign), sign);
    store(sizes.at + i, smaller_bytes(size, bytes_of(127)));
  }
}

/// Mask of the bytes that are larger than `limit`. All bytes are at most 127.
inline std::uint64_t larger_than(const Bytes& sizes, unsigned limit) {
  const Vector limits = bytes_of(static_cast<int>(limit));
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < kGroupCodes; i += kVectorBytes) {
    mask |= std::uint64_t{top_bits(larger_bytes(load(sizes.at + i), limits))} << i;
  }
  return mask;
}

/// Mask of the bytes that equal `value`.
inline std::uint64_t equal_to(const Bytes& bytes, std::uint8_t value) {
  const Vector values = bytes_of(value);
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < kGroupCodes; i += kVectorBytes) {
    mask |= std::uint64_t{top_bits(equal_bytes(load(bytes.at + i), values))} << i;
  }
  return mask;
}

/// Compute the bit lengths of the codes' magnitudes (c, or -c - 1 if negative) from the exponent of
/// a float. The bit after the leading one is cleared, so that rounding cannot change the exponent.
inline void bit_lengths_of(const std::int32_t* codes, Bytes& lengths) {
  const auto length_at = [&](std::size_t i) {
    const Vector code = load(codes + i);
    const Vector size = differ(code, right_signed(code, 31));
    return subtract_words(right(to_floats(only_second(right(size, 1), size)), 23), 126);
  };
  for (std::size_t i = 0; i < kGroupCodes; i += kVectorBytes) {
    const Vector length = narrow(length_at(i), length_at(i + kVectorWords),
                                 length_at(i + 2 * kVectorWords), length_at(i + 3 * kVectorWords));
    // Zero has exponent 0, so its length here is -126.
    store(lengths.at + i, only_second(larger_bytes(bytes_of(0), length), length));
  }
}

#else

inline void saturate(const std::int32_t* codes, std::size_t shift, Bytes& bytes) {
  for (std::size_t i = 0; i < kGroupCodes; ++i) {
    const std::int32_t v = codes[i] >> shift;
    bytes.at[i] = static_cast<std::uint8_t>(v < -128 ? -128 : v > 127 ? 127 : v);
  }
}

inline void byte_of_words(const std::uint32_t* words, std::size_t j, Bytes& bytes) {
  for (std::size_t i = 0; i < kGroupCodes; ++i) {
    bytes.at[i] = static_cast<std::uint8_t>(words[i] >> (8 * j));
  }
}

inline void sizes_of(const Bytes& bytes, Bytes& sizes) {
  for (std::size_t i = 0; i < kGroupCodes; ++i) {
    const auto value = static_cast<std::int8_t>(bytes.at[i]);
    const int size = value < 0 ? -value : value;
    sizes.at[i] = static_cast<std::uint8_t>(size > 127 ? 127 : size);
  }
}

/// Gather the top bits of eight bytes in one byte.
inline std::uint64_t top_bits(std::uint64_t word) {
  return (((word >> 7) & kOnes) * 0x0102040810204080U) >> 56;
}

inline std::uint64_t larger_than(const Bytes& sizes, unsigned limit) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < kGroupCodes; i += 8) {
    mask |= top_bits(load_word(sizes.at + i) + kOnes * (127 - limit)) << i;
  }
  return mask;
}

inline std::uint64_t equal_to(const Bytes& bytes, std::uint8_t value) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < kGroupCodes; i += 8) {
    const std::uint64_t word = load_word(bytes.at + i) ^ (kOnes * value);
    const std::uint64_t differs = ((word & (kOnes * 127)) + kOnes * 127) | word;
    mask |= top_bits(~differs) << i;
  }
  return mask;
}

inline void bit_lengths_of(const std::int32_t* codes, Bytes& lengths) {
  for (std::size_t i = 0; i < kGroupCodes; ++i) {
    const std::int32_t size = codes[i] ^ (codes[i] >> 31);
    const auto value = static_cast<float>(size & ~(size >> 1));
    const std::int32_t exponent = __builtin_bit_cast(std::int32_t, value) >> 23;
    lengths.at[i] = static_cast<std::uint8_t>(exponent == 0 ? 0 : exponent - 126);
  }
}

#endif

/// Convert signed bytes to codes.
inline void widen(const Bytes& bytes, std::int32_t* codes) {
  for (std::size_t i = 0; i < kGroupCodes; ++i) codes[i] = (bytes.at[i] ^ 0x80) - 0x80;
}

/// Number of bytes that are larger than `limit`. All bytes are at most 127.
inline std::size_t count_larger(const Bytes& sizes, unsigned limit) {
#if defined(__POPCNT__)
  return static_cast<std::size_t>(__builtin_popcountll(larger_than(sizes, limit)));
#else
  std::uint64_t sums = 0;
  for (std::size_t i = 0; i < kGroupCodes; i += 8) {
    sums += ((load_word(sizes.at + i) + kOnes * (127 - limit)) >> 7) & kOnes;
  }
  return static_cast<std::size_t>((sums * kOnes) >> 56);
#endif
}

#if defined(__AVX2__)

/// Pack four codes of 2 bits, or two of 4 bits (is_pairs), into every byte.
inline void pack_fields(const Bytes& bytes, bool is_pairs, std::uint8_t* out) {
  const Vector field = bytes_of(is_pairs ? 15 : 3);
  const Vector pairs = _mm256_set1_epi16(is_pairs ? 0x1001 : 0x0401);
  const Vector quads = _mm256_set1_epi32(is_pairs ? 0x01000001 : 0x00100001);
  const Vector low =
      _mm256_madd_epi16(_mm256_maddubs_epi16(both(load(bytes.at), field), pairs), quads);
  const Vector high =
      _mm256_madd_epi16(_mm256_maddubs_epi16(both(load(bytes.at + 32), field), pairs), quads);
  // The result is in the low one or two bytes of every 32 bits.
  const Vector words = _mm256_permute4x64_epi64(_mm256_packus_epi32(low, high), 0xD8);
  if (is_pairs) {
    store(out, words);
  } else {
    const Vector packed = _mm256_packus_epi16(words, words);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out),
                     _mm256_castsi256_si128(_mm256_permute4x64_epi64(packed, 0x08)));
  }
}

#else

inline void pack_fields(const Bytes& bytes, bool is_pairs, std::uint8_t* out) {
  for (std::size_t i = 0; i < 8; ++i) {
    std::uint64_t word = load_word(bytes.at + 8 * i);
    if (is_pairs) {
      word &= kOnes * 15;
      word = (word | (word >> 4)) & 0x00FF00FF00FF00FFU;
      word = (word | (word >> 8)) & 0x0000FFFF0000FFFFU;
      word |= word >> 16;
      std::memcpy(out + 4 * i, &word, 4);
    } else {
      word &= kOnes * 3;
      word = (word | (word >> 6)) & 0x000F000F000F000FU;
      word = (word | (word >> 12)) & 0x000000FF000000FFU;
      word |= word >> 24;
      std::memcpy(out + 2 * i, &word, 2);
    }
  }
}

#endif

/// The inverse of pack_fields(); the codes are sign-extended to bytes.
inline void unpack_fields(const std::uint8_t* in, bool is_pairs, Bytes& bytes) {
  for (std::size_t i = 0; i < 8; ++i) {
    std::uint64_t word = 0;
    if (is_pairs) {
      std::memcpy(&word, in + 4 * i, 4);
      word = (word | (word << 16)) & 0x0000FFFF0000FFFFU;
      word = (word | (word << 8)) & 0x00FF00FF00FF00FFU;
      word = (word | (word << 4)) & (kOnes * 15);
      word |= (word & (kOnes * 8)) * 0x1E;
    } else {
      std::memcpy(&word, in + 2 * i, 2);
      word = (word | (word << 24)) & 0x000000FF000000FFU;
      word = (word | (word << 12)) & 0x000F000F000F000FU;
      word = (word | (word << 6)) & (kOnes * 3);
      word |= (word & (kOnes * 2)) * 0x7E;
    }
    std::memcpy(bytes.at + 8 * i, &word, 8);
  }
}

}  // namespace
}  // namespace tailrace::trz::TRZ_ISA
