// split() and join() without AVX-512: one group at a time, in loops that compilers vectorise.
//
// Only group_kernels.cpp includes this header. 64 saturated codes are 64 bytes; counting and
// packing work on these bytes (group_bytes.hpp).

#pragma once

#include "trz/kernels/group_bytes.hpp"
#include "trz/kernels/group_kernels.hpp"
#include "trz/kernels/group_planes.hpp"

namespace tailrace::trz::TRZ_ISA {
namespace {

/// The smallest of the classes 0 to 6 that a group fits, or 7. A group that fits one of the classes
/// 0 to 3 also fits all larger ones up to 3; the same holds for the classes 4 to 6. So a binary
/// search that begins with class 3 finds the class with three tests.
inline std::size_t narrow_class(const Bytes& sizes) {
  const auto exceeds = [&](std::size_t k) -> std::size_t {
    return count_larger(sizes, (1U << k) - 1) > class_misfits_max(k) ? 1 : 0;
  };
  std::size_t k = 4 * exceeds(3);
  k += 2 * exceeds(k + 1);
  return k + exceeds(k);
}

/// The class of a group that fits no narrow class. The search begins at `guess`.
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
  Bytes bytes;
  Bytes sizes;
  saturate(codes, n_planes, bytes);
  sizes_of(bytes, sizes);
  put_exceptions(larger_than(sizes, 126), codes, 0x80, bytes, cursor);
  std::memcpy(cursor.bytes[k], bytes.at, kGroupCodes);
  cursor.bytes[k] += kGroupCodes;
  cursor.planes =
      put_planes(reinterpret_cast<const std::uint32_t*>(codes), n_planes, cursor.planes);
  return k;
}

void split(const std::int32_t* codes, std::size_t n_groups, GroupCursor& cursor) {
  std::size_t guess = 7;
  for (std::size_t g = 0; g < n_groups; ++g, codes += kGroupCodes) {
    Bytes bytes;
    Bytes sizes;
    saturate(codes, 0, bytes);
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

/// Store exceptions at the marked places; false if exceptions run out.
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
    const auto high = static_cast<std::uint32_t>((bytes.at[i] ^ 0x80) - 0x80);
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
      widen(bytes, codes);
    }
    const std::uint8_t marker = k == 1 ? 0xFE : is_packed ? 0xF8 : 0x80;
    if (!take_exceptions(equal_to(bytes, marker), cursor, codes)) return false;
  }
  return true;
}

}  // namespace
}  // namespace tailrace::trz::TRZ_ISA
