// split() and join() without AVX-512: one group at a time, in loops that compilers vectorise.
//
// Included by group_kernels.cpp alone. 64 codes are 64 bytes once they are saturated; counting and
// packing work on those bytes, eight at a time in a 64-bit word where SSE2 is not there.

#pragma once

#include "codec/trz/group_kernels.hpp"
#include "codec/trz/group_planes.hpp"

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

#if defined(__SSE2__)

inline __m128i load_16(const void* from) {
  return _mm_loadu_si128(static_cast<const __m128i*>(from));
}

/// Codes as signed bytes, saturated.
inline void saturate(const std::int32_t* codes, Bytes& bytes) {
  for (std::size_t i = 0; i < kGroupCodes; i += 16) {
    const __m128i low = _mm_packs_epi32(load_16(codes + i), load_16(codes + i + 4));
    const __m128i high = _mm_packs_epi32(load_16(codes + i + 8), load_16(codes + i + 12));
    _mm_store_si128(reinterpret_cast<__m128i*>(bytes.at + i), _mm_packs_epi16(low, high));
  }
}

/// Bit i: byte i, which is at most 127, is larger than `limit`.
inline std::uint64_t larger_than(const Bytes& sizes, unsigned limit) {
  const __m128i limits = _mm_set1_epi8(static_cast<char>(limit));
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto bits = static_cast<unsigned>(
        _mm_movemask_epi8(_mm_cmpgt_epi8(load_16(sizes.at + 16 * i), limits)));
    mask |= static_cast<std::uint64_t>(bits) << (16 * i);
  }
  return mask;
}

/// Bit i: byte i is `value`.
inline std::uint64_t equal_to(const Bytes& bytes, std::uint8_t value) {
  const __m128i values = _mm_set1_epi8(static_cast<char>(value));
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < 4; ++i) {
    const auto bits = static_cast<unsigned>(
        _mm_movemask_epi8(_mm_cmpeq_epi8(load_16(bytes.at + 16 * i), values)));
    mask |= static_cast<std::uint64_t>(bits) << (16 * i);
  }
  return mask;
}

#else

inline void saturate(const std::int32_t* codes, Bytes& bytes) {
  for (std::size_t i = 0; i < kGroupCodes; ++i) {
    const std::int32_t c = codes[i] < -128 ? -128 : codes[i] > 127 ? 127 : codes[i];
    bytes.at[i] = static_cast<std::uint8_t>(c);
  }
}

/// Bits 7 of the eight bytes as eight bits.
inline std::uint64_t top_bits(std::uint64_t word) {
  return (((word >> 7) & kOnes) * 0x0102040810204080U) >> 56;
}

inline std::uint64_t larger_than(const Bytes& sizes, unsigned limit) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint64_t word = load_word(sizes.at + 8 * i);
    mask |= top_bits(word + kOnes * (127 - limit)) << (8 * i);
  }
  return mask;
}

inline std::uint64_t equal_to(const Bytes& bytes, std::uint8_t value) {
  std::uint64_t mask = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint64_t word = load_word(bytes.at + 8 * i) ^ (kOnes * value);
    const std::uint64_t differs = ((word & (kOnes * 127)) + kOnes * 127) | word;
    mask |= top_bits(~differs) << (8 * i);
  }
  return mask;
}

#endif

/// Magnitudes of signed bytes, at most 127.
inline void sizes_of(const Bytes& bytes, Bytes& sizes) {
  for (std::size_t i = 0; i < kGroupCodes; ++i) {
    const auto value = static_cast<std::int8_t>(bytes.at[i]);
    const auto sign = static_cast<std::int8_t>(value >> 7);
    // -128 becomes 128 - 1: its sign is subtracted with saturation, so to say.
    const auto size = static_cast<std::uint8_t>((value ^ sign) - sign);
    sizes.at[i] = static_cast<std::uint8_t>(size - (size >> 7));
  }
}

inline std::size_t count_larger(const Bytes& sizes, unsigned limit) {
#if defined(__POPCNT__)
  return static_cast<std::size_t>(__builtin_popcountll(larger_than(sizes, limit)));
#else
  std::uint64_t sums = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    const std::uint64_t word = load_word(sizes.at + 8 * i) + kOnes * (127 - limit);
    sums += (word >> 7) & kOnes;
  }
  return static_cast<std::size_t>((sums * kOnes) >> 56);
#endif
}

/// Four codes of 2 bits, or two of 4, in every byte.
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

/// The inverse, as signed bytes.
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

/// The smallest of the classes 0 to 6 that a group fits, or 7.
inline std::size_t narrow_class(const Bytes& sizes) {
  unsigned fits = 1U << 7;
  for (std::size_t k = 0; k < 7; ++k) {
    const std::size_t n = count_larger(sizes, (1U << k) - 1);
    fits |= (n <= class_misfits_max(k) ? 1U : 0U) << k;
  }
  return static_cast<std::size_t>(__builtin_ctz(fits));
}

/// Bit lengths of the codes' magnitudes (c, or -c - 1 if negative), from the exponent of a float;
/// the bit behind the leading one is cleared, so that rounding cannot carry into the exponent.
inline void bit_lengths_of(const std::int32_t* codes, Bytes& lengths) {
  for (std::size_t i = 0; i < kGroupCodes; ++i) {
    const std::int32_t size = codes[i] ^ (codes[i] >> 31);
    const auto value = static_cast<float>(size & ~(size >> 1));
    const std::int32_t exponent = __builtin_bit_cast(std::int32_t, value) >> 23;
    lengths.at[i] = static_cast<std::uint8_t>(exponent == 0 ? 0 : exponent - 126);
  }
}

/// The class of a group that fits none of the narrow ones; `guess` is where the search begins.
inline std::size_t wide_class(const std::int32_t* codes, std::size_t guess) {
  Bytes lengths;
  bit_lengths_of(codes, lengths);
  std::size_t k = guess;
  const auto fits = [&](std::size_t bits) {
    return count_larger(lengths, static_cast<unsigned>(bits)) <= class_misfits_max(kClasses - 1);
  };
  while (!fits(k)) ++k;
  while (k > 7 && fits(k - 1)) --k;
  return k;
}

inline void put_exceptions(std::uint64_t misfits, const std::int32_t* codes, std::uint8_t marker,
                           Bytes& bytes, GroupCursor& cursor) {
  for (; misfits != 0; misfits &= misfits - 1) {
    const auto i = static_cast<std::size_t>(__builtin_ctzll(misfits));
    *cursor.exceptions++ = codes[i];
    bytes.at[i] = marker;
  }
}

__attribute__((noinline)) std::size_t split_wide(const std::int32_t* codes, std::size_t guess,
                                                 GroupCursor& cursor) {
  const std::size_t k = wide_class(codes, guess);
  const std::size_t n_planes = class_planes(k);
  std::int32_t high[kGroupCodes];
  std::uint32_t words[kGroupCodes];
  for (std::size_t i = 0; i < kGroupCodes; ++i) {
    high[i] = codes[i] >> n_planes;
    words[i] = static_cast<std::uint32_t>(codes[i]);
  }
  Bytes bytes;
  Bytes sizes;
  saturate(high, bytes);
  sizes_of(bytes, sizes);
  put_exceptions(larger_than(sizes, 126), codes, 0x80, bytes, cursor);
  std::memcpy(cursor.bytes[k], bytes.at, kGroupCodes);
  cursor.bytes[k] += kGroupCodes;
  cursor.planes = put_planes(words, n_planes, cursor.planes);
  return k;
}

void split(const std::int32_t* codes, std::size_t n_groups, GroupCursor& cursor) {
  std::size_t guess = 7;
  for (std::size_t g = 0; g < n_groups; ++g, codes += kGroupCodes) {
    Bytes bytes;
    Bytes sizes;
    saturate(codes, bytes);
    sizes_of(bytes, sizes);
    std::size_t k = narrow_class(sizes);
    if (k == 7) {
      guess = k = split_wide(codes, guess, cursor);
    } else if (k >= 4) {
      put_exceptions(larger_than(sizes, 126), codes, 0x80, bytes, cursor);
      std::memcpy(cursor.bytes[k], bytes.at, kGroupCodes);
      cursor.bytes[k] += kGroupCodes;
    } else if (k != 0) {
      const bool is_pairs = k != 1;
      put_exceptions(larger_than(sizes, is_pairs ? 7 : 1), codes, is_pairs ? 0xF8 : 0xFE, bytes,
                     cursor);
      pack_fields(bytes, is_pairs, cursor.bytes[k]);
      cursor.bytes[k] += class_bytes(k);
    }
    *cursor.classes++ = static_cast<std::uint8_t>(k);
  }
}

/// Put exceptions in the places marked; false if there are too few.
inline bool take_exceptions(std::uint64_t marked, GroupCursor& cursor, std::int32_t* codes) {
  for (; marked != 0; marked &= marked - 1) {
    if (cursor.exceptions == cursor.exceptions_end) return false;
    codes[__builtin_ctzll(marked)] = *cursor.exceptions++;
  }
  return true;
}

__attribute__((noinline)) void join_planes(const Bytes& bytes, std::size_t n_planes,
                                           GroupCursor& cursor, std::int32_t* codes) {
  std::uint32_t words[kGroupCodes];
  words_of_planes(cursor.planes, n_planes, words);
  cursor.planes += kPlaneBytes * n_planes;
  for (std::size_t i = 0; i < kGroupCodes; ++i) {
    const auto high = static_cast<std::uint32_t>(static_cast<std::int8_t>(bytes.at[i]));
    codes[i] = static_cast<std::int32_t>((high << n_planes) | words[i]);
  }
}

bool join(GroupCursor& cursor, std::size_t n_groups, std::int32_t* codes) {
  for (std::size_t g = 0; g < n_groups; ++g, codes += kGroupCodes) {
    const std::size_t k = *cursor.classes++;
    if (k >= kClasses) return false;
    if (k == 0) {
      std::memset(codes, 0, kGroupCodes * sizeof(std::int32_t));
      continue;
    }
    Bytes bytes;
    const bool is_packed = k <= 3;
    if (is_packed) {
      unpack_fields(cursor.bytes[k], k != 1, bytes);
    } else {
      std::memcpy(bytes.at, cursor.bytes[k], kGroupCodes);
    }
    cursor.bytes[k] += class_bytes(k);
    if (k >= 7) {
      join_planes(bytes, class_planes(k), cursor, codes);
    } else {
      for (std::size_t i = 0; i < kGroupCodes; ++i)
        codes[i] = static_cast<std::int8_t>(bytes.at[i]);
    }
    const std::uint8_t marker = k == 1 ? 0xFE : is_packed ? 0xF8 : 0x80;
    if (!take_exceptions(equal_to(bytes, marker), cursor, codes)) return false;
  }
  return true;
}

}  // namespace
}  // namespace tailrace::trz::TRZ_ISA
