// split() and join() in AVX-512: batches of groups, nearly without branches.
//
// Only group_kernels.cpp includes this header. The sequence of classes is unpredictable, so a
// branch on a group's class or on its number of exceptions is mispredicted too often. The code has
// such a branch only for the wide classes. Classes up to 6 share one sequence of instructions,
// whose operands come from a table (Shape). Exceptions are collected as positions within a batch
// and moved after the batch. Bit masks give the classes of eight groups at a time.

#pragma once

#include "trz/kernels/group_kernels.hpp"
#include "trz/kernels/group_planes.hpp"

namespace tailrace::trz::TRZ_ISA {
namespace {

constexpr std::size_t kBatchGroups = 32;   ///< Below 64: a mask has one bit per group.
constexpr std::size_t kNarrowClasses = 7;  ///< Classes without planes.

/// Operands that pack the bytes of a class, with n codes of 8 / n bits in each byte.
struct alignas(64) Shape {
  std::uint8_t field[64];    ///< Mask of a code's bits.
  std::uint8_t sign[64];     ///< Mask of a code's sign bit.
  std::int8_t pairs[64];     ///< Weights that join two codes.
  std::int16_t quads[32];    ///< Weights that join two pairs of codes.
  std::uint8_t gather[64];   ///< Positions of the packed bytes after joining.
  std::uint8_t scatter[64];  ///< Packed byte for each byte of the 8-byte word of its codes.
  std::uint8_t shifts[64];   ///< Bit of this word at which a code begins.
  std::uint8_t marker[64];
  std::uint8_t limit[64];  ///< Largest magnitude that fits.
  std::uint64_t is_packed;
};

constexpr Shape make_shape(std::size_t n_bits) {
  Shape shape = {};
  const std::size_t n = 8 / n_bits;
  for (std::size_t i = 0; i < 64; ++i) {
    shape.field[i] = static_cast<std::uint8_t>((1U << n_bits) - 1);
    shape.sign[i] = static_cast<std::uint8_t>(1U << (n_bits - 1));
    shape.pairs[i] = static_cast<std::int8_t>(i % 2 == 0 ? 1 : 1 << (n_bits % 8));
    shape.gather[i] = static_cast<std::uint8_t>(n == 4 ? 4 * i : n == 2 ? i / 2 * 4 + i % 2 : i);
    shape.scatter[i] = static_cast<std::uint8_t>(i / 8 * (8 / n) + i % (8 / n));
    shape.shifts[i] = static_cast<std::uint8_t>(i % 8 * n_bits);
    shape.marker[i] = static_cast<std::uint8_t>(0x100U - (1U << (n_bits - 1)));
    shape.limit[i] = n_bits == 2 ? 1 : n_bits == 4 ? 7 : 126;
  }
  for (std::size_t i = 0; i < 32; ++i) {
    shape.quads[i] = static_cast<std::int16_t>(i % 2 == 0 ? 1 : n == 4 ? 16 : 256);
  }
  shape.is_packed = n == 1 ? 0 : ~std::uint64_t{0};
  return shape;
}

constexpr Shape kShapes[3] = {make_shape(2), make_shape(4), make_shape(8)};
constexpr std::uint8_t kShapeOfClass[kNarrowClasses] = {2, 0, 1, 1, 2, 2, 2};
constexpr std::uint8_t kBytesOfClass[kNarrowClasses] = {0, 16, 32, 32, 64, 64, 64};
constexpr ByteTable kZeros = {};

constexpr ByteTable iota_bytes() {
  ByteTable table = {};
  for (std::size_t i = 0; i < 64; ++i) table.at[i] = static_cast<std::uint8_t>(i);
  return table;
}
constexpr ByteTable kIota = iota_bytes();

/// Positions of a batch's exceptions, in order.
struct Positions {
  std::uint16_t at[kBatchGroups * kGroupCodes + 32];
  std::size_t n;

  void append(std::uint64_t mask, std::size_t group) {
    const auto n_set = static_cast<std::size_t>(__builtin_popcountll(mask));
    const __m512i found = _mm512_maskz_compress_epi8(mask, table_of(kIota));
    const __m256i base = _mm256_set1_epi16(static_cast<short>(group * kGroupCodes));
    _mm256_storeu_si256(
        reinterpret_cast<__m256i*>(at + n),
        _mm256_add_epi16(_mm256_cvtepu8_epi16(_mm512_castsi512_si128(found)), base));
    if (n_set > 16) append_more(found, n_set, base);
    n += n_set;
  }
  /// Append the positions after the first 16. Only corrupt input has so many in one group.
  __attribute__((noinline)) void append_more(__m512i found, std::size_t n_set, __m256i base) {
    alignas(64) std::uint8_t bytes[64];
    _mm512_store_si512(bytes, found);
    for (std::size_t i = 16; i < n_set; i += 16) {
      const __m128i some = _mm_load_si128(reinterpret_cast<const __m128i*>(bytes + i));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(at + n + i),
                          _mm256_add_epi16(_mm256_cvtepu8_epi16(some), base));
    }
  }
};

/// Convert 64 codes to saturated bytes, in order.
inline __m512i saturated_bytes(const Group& codes) {
  const __m512i low = _mm512_packs_epi32(codes.at[0], codes.at[1]);
  const __m512i high = _mm512_packs_epi32(codes.at[2], codes.at[3]);
  const __m512i order = _mm512_set_epi32(15, 11, 7, 3, 14, 10, 6, 2, 13, 9, 5, 1, 12, 8, 4, 0);
  return _mm512_permutexvar_epi32(order, _mm512_packs_epi16(low, high));
}

/// Store the bytes, with markers for those that do not fit. Returns a mask of the markers.
inline std::uint64_t put_bytes(__m512i bytes, const Shape& shape, std::uint8_t* out) {
  const std::uint64_t misfits =
      _mm512_cmpgt_epu8_mask(_mm512_abs_epi8(bytes), _mm512_load_si512(shape.limit));
  const __m512i marked = _mm512_mask_mov_epi8(bytes, misfits, _mm512_load_si512(shape.marker));
  const __m512i fields = _mm512_and_si512(marked, _mm512_load_si512(shape.field));
  const __m512i pairs = _mm512_maddubs_epi16(fields, _mm512_load_si512(shape.pairs));
  const __m512i quads = _mm512_madd_epi16(pairs, _mm512_load_si512(shape.quads));
  _mm512_storeu_si512(out, _mm512_mask_permutexvar_epi8(marked, shape.is_packed,
                                                        _mm512_load_si512(shape.gather), quads));
  return misfits;
}

/// Codes of a batch as bytes, and masks of those larger than 0, 1, 3, 7, 15, 31, 63.
struct Survey {
  alignas(64) std::uint8_t bytes[kBatchGroups][64];
  alignas(64) std::uint64_t larger[kNarrowClasses][kBatchGroups];
};

inline void survey_groups(const std::int32_t* codes, std::size_t n_groups, Survey& survey) {
  for (std::size_t g = 0; g < n_groups; ++g) {
    const __m512i bytes = saturated_bytes(load_group(codes + g * kGroupCodes));
    _mm512_store_si512(survey.bytes[g], bytes);
    const __m512i sizes = _mm512_abs_epi8(bytes);
    for (std::size_t k = 0; k < kNarrowClasses; ++k) {
      survey.larger[k][g] =
          _mm512_cmpgt_epu8_mask(sizes, _mm512_set1_epi8(static_cast<char>((1 << k) - 1)));
    }
  }
}

/// Find the classes of 8 groups. A group that fits no narrow class gets 7; the mask of these groups
/// is returned.
inline std::uint64_t find_classes(const Survey& survey, std::size_t first, std::uint8_t* classes) {
  __m512i found = _mm512_set1_epi64(kNarrowClasses);
  for (std::size_t k = kNarrowClasses; k-- > 0;) {
    const __m512i n = _mm512_popcnt_epi64(_mm512_load_si512(survey.larger[k] + first));
    const __m512i most = _mm512_set1_epi64(static_cast<long long>(class_misfits_max(k)));
    found = _mm512_mask_mov_epi64(found, _mm512_cmple_epu64_mask(n, most),
                                  _mm512_set1_epi64(static_cast<long long>(k)));
  }
  _mm_storel_epi64(reinterpret_cast<__m128i*>(classes), _mm512_cvtepi64_epi8(found));
  return _mm512_cmpeq_epi64_mask(found, _mm512_set1_epi64(kNarrowClasses));
}

inline __m512i leading_zeros(__m512i codes) {
  return _mm512_lzcnt_epi32(_mm512_xor_si512(codes, _mm512_srai_epi32(codes, 31)));
}

/// Bit lengths of the codes in a batch's wide groups: one word per bit of the length and group.
struct WideSurvey {
  alignas(64) std::uint64_t bits[5][kBatchGroups];
  alignas(64) std::uint64_t classes[kBatchGroups];
};

inline void survey_wide_group(const Group& codes, std::size_t g, WideSurvey& survey) {
  const __m512i zeros = _mm512_packs_epi16(
      _mm512_packs_epi32(leading_zeros(codes.at[0]), leading_zeros(codes.at[1])),
      _mm512_packs_epi32(leading_zeros(codes.at[2]), leading_zeros(codes.at[3])));
  const __m512i lengths = _mm512_sub_epi8(_mm512_set1_epi8(32), zeros);
  for (int b = 0; b < 5; ++b) {
    survey.bits[b][g] = _mm512_test_epi8_mask(lengths, _mm512_set1_epi8(static_cast<char>(1 << b)));
  }
}

/// Find the classes of 8 wide groups: the bit length of the (misfits + 1)-th largest code, found
/// bit by bit from the top. Groups that are not wide get an arbitrary class, which is not used.
inline void find_wide_classes(std::size_t first, WideSurvey& survey) {
  __m512i candidates = _mm512_set1_epi64(-1);
  __m512i rank = _mm512_set1_epi64(static_cast<long long>(class_misfits_max(kNarrowClasses)) + 1);
  __m512i length = _mm512_setzero_si512();
  for (int b = 4; b >= 0; --b) {
    const __m512i bits = _mm512_load_si512(survey.bits[b] + first);
    const __m512i with = _mm512_and_si512(candidates, bits);
    const __m512i n = _mm512_popcnt_epi64(with);
    const __mmask8 is_set = _mm512_cmpge_epu64_mask(n, rank);
    candidates = _mm512_mask_mov_epi64(_mm512_andnot_si512(bits, candidates), is_set, with);
    rank = _mm512_mask_sub_epi64(rank, static_cast<__mmask8>(~is_set), rank, n);
    length = _mm512_mask_or_epi64(length, is_set, length, _mm512_set1_epi64(1LL << b));
  }
  _mm512_store_si512(survey.classes + first,
                     _mm512_max_epu64(length, _mm512_set1_epi64(kNarrowClasses)));
}

/// Find the classes of the groups whose bits are set in `is_wide`.
__attribute__((noinline)) void survey_wide_groups(const std::int32_t* codes, std::uint64_t is_wide,
                                                  WideSurvey& survey) {
  for (; is_wide != 0; is_wide &= is_wide - 1) {
    const auto g = static_cast<std::size_t>(__builtin_ctzll(is_wide));
    survey_wide_group(load_group(codes + g * kGroupCodes), g, survey);
  }
  for (std::size_t g = 0; g < kBatchGroups; g += 8) find_wide_classes(g, survey);
}

inline std::uint64_t put_wide(const std::int32_t* group, std::size_t k, std::uint8_t* out,
                              GroupCursor& cursor) {
  const Group codes = load_group(group);
  const std::size_t n_planes = class_planes(k);
  const __m128i shift = _mm_cvtsi64_si128(static_cast<long long>(n_planes));
  const Group high = {{_mm512_sra_epi32(codes.at[0], shift), _mm512_sra_epi32(codes.at[1], shift),
                       _mm512_sra_epi32(codes.at[2], shift), _mm512_sra_epi32(codes.at[3], shift)}};
  const __m512i values = saturated_bytes(high);
  const std::uint64_t misfits =
      _mm512_cmpgt_epu8_mask(_mm512_abs_epi8(values), _mm512_load_si512(kShapes[2].limit));
  _mm512_storeu_si512(out,
                      _mm512_mask_mov_epi8(values, misfits, _mm512_load_si512(kShapes[2].marker)));
  cursor.planes = put_planes(codes, n_planes, cursor.planes);
  return misfits;
}

void split_batch(const std::int32_t* codes, std::size_t n_groups, std::uint8_t** bytes,
                 GroupCursor& cursor) {
  Survey survey;
  WideSurvey wide;
  Positions positions;
  positions.n = 0;
  survey_groups(codes, n_groups, survey);
  alignas(8) std::uint8_t classes[kBatchGroups];
  std::uint64_t is_wide = 0;
  for (std::size_t g = 0; g < n_groups; g += 8) {
    is_wide |= find_classes(survey, g, classes + g) << g;
  }
  is_wide &= (std::uint64_t{1} << n_groups) - 1;
  if (is_wide != 0) survey_wide_groups(codes, is_wide, wide);
  for (std::size_t g = 0; g < n_groups; ++g) {
    std::size_t k = classes[g];
    std::uint64_t misfits = 0;
    if (k == kNarrowClasses) {
      k = wide.classes[g];
      classes[g] = static_cast<std::uint8_t>(k);
      misfits = put_wide(codes + g * kGroupCodes, k, bytes[k], cursor);
      bytes[k] += kGroupCodes;
    } else {
      misfits = put_bytes(_mm512_load_si512(survey.bytes[g]), kShapes[kShapeOfClass[k]], bytes[k]);
      bytes[k] += kBytesOfClass[k];
    }
    positions.append(misfits, g);
  }
  for (std::size_t i = 0; i < positions.n; ++i) cursor.exceptions[i] = codes[positions.at[i]];
  cursor.exceptions += positions.n;
  std::memcpy(cursor.classes, classes, n_groups);
  cursor.classes += n_groups;
}

void split(const std::int32_t* codes, std::size_t n_groups, GroupCursor& cursor) {
  std::uint8_t nowhere[64];
  std::uint8_t* const unused = cursor.bytes[0];
  cursor.bytes[0] = nowhere;
  while (n_groups != 0) {
    const std::size_t n = n_groups < kBatchGroups ? n_groups : kBatchGroups;
    split_batch(codes, n, cursor.bytes, cursor);
    codes += n * kGroupCodes;
    n_groups -= n;
  }
  cursor.bytes[0] = unused;
}

inline void widen(__m512i bytes, std::int32_t* codes) {
  _mm512_storeu_si512(codes, _mm512_cvtepi8_epi32(_mm512_castsi512_si128(bytes)));
  _mm512_storeu_si512(codes + 16, _mm512_cvtepi8_epi32(_mm512_extracti32x4_epi32(bytes, 1)));
  _mm512_storeu_si512(codes + 32, _mm512_cvtepi8_epi32(_mm512_extracti32x4_epi32(bytes, 2)));
  _mm512_storeu_si512(codes + 48, _mm512_cvtepi8_epi32(_mm512_extracti32x4_epi32(bytes, 3)));
}

/// Unpack bytes to signed bytes; markers are unpacked like codes.
inline __m512i take_bytes(const std::uint8_t* in, const Shape& shape) {
  const __m512i words =
      _mm512_permutexvar_epi8(_mm512_load_si512(shape.scatter), _mm512_loadu_si512(in));
  const __m512i shifted = _mm512_multishift_epi64_epi8(_mm512_load_si512(shape.shifts), words);
  const __m512i sign = _mm512_load_si512(shape.sign);
  // ((v & field) ^ sign) - sign extends the sign.
  const __m512i flipped =
      _mm512_ternarylogic_epi64(shifted, _mm512_load_si512(shape.field), sign, 0x6A);
  return _mm512_sub_epi8(flipped, sign);
}

__attribute__((noinline)) std::uint64_t join_wide(std::size_t k, GroupCursor& cursor,
                                                  std::int32_t* codes) {
  const __m512i bytes = _mm512_loadu_si512(cursor.bytes[k]);
  cursor.bytes[k] += 64;
  const std::size_t n_planes = class_planes(k);
  const Group low = words_of_planes(cursor.planes, n_planes);
  cursor.planes += kPlaneBytes * n_planes;
  const __m128i shift = _mm_cvtsi64_si128(static_cast<long long>(n_planes));
  alignas(64) std::int32_t high[kGroupCodes];
  widen(bytes, high);
  for (std::size_t i = 0; i < 4; ++i) {
    const __m512i shifted = _mm512_sll_epi32(_mm512_load_si512(high + 16 * i), shift);
    _mm512_storeu_si512(codes + 16 * i, _mm512_or_si512(shifted, low.at[i]));
  }
  return _mm512_cmpeq_epi8_mask(bytes, _mm512_set1_epi8(char(-128)));
}

bool join_batch(GroupCursor& cursor, std::size_t n_groups, std::int32_t* codes) {
  Positions positions;
  positions.n = 0;
  for (std::size_t g = 0; g < n_groups; ++g) {
    const std::size_t k = cursor.classes[g];
    std::uint64_t marked = 0;
    if (k >= kNarrowClasses) {
      if (k >= kClasses) return false;
      marked = join_wide(k, cursor, codes + g * kGroupCodes);
    } else {
      const Shape& shape = kShapes[kShapeOfClass[k]];
      const __m512i bytes = take_bytes(cursor.bytes[k], shape);
      cursor.bytes[k] += kBytesOfClass[k];
      widen(bytes, codes + g * kGroupCodes);
      marked = _mm512_cmpeq_epi8_mask(bytes, _mm512_load_si512(shape.marker));
    }
    positions.append(marked, g);
  }
  cursor.classes += n_groups;
  const auto n_left = static_cast<std::size_t>(cursor.exceptions_end - cursor.exceptions);
  if (positions.n > n_left) return false;
  for (std::size_t i = 0; i < positions.n; ++i) codes[positions.at[i]] = cursor.exceptions[i];
  cursor.exceptions += positions.n;
  return true;
}

bool join(GroupCursor& cursor, std::size_t n_groups, std::int32_t* codes) {
  std::uint8_t* const unused = cursor.bytes[0];
  cursor.bytes[0] = const_cast<std::uint8_t*>(kZeros.at);
  bool is_good = true;
  while (n_groups != 0 && is_good) {
    const std::size_t n = n_groups < kBatchGroups ? n_groups : kBatchGroups;
    is_good = join_batch(cursor, n, codes);
    codes += n * kGroupCodes;
    n_groups -= n;
  }
  cursor.bytes[0] = unused;
  return is_good;
}

}  // namespace
}  // namespace tailrace::trz::TRZ_ISA
