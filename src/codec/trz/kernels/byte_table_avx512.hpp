// A table of 256 bytes in four registers, where AVX-512 VBMI is: 64 look-ups in three instructions.
//
// This header is included by kernel files only; everything in it is theirs alone.

#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace tailrace::trz::TRZ_ISA {
namespace {

/// 256 bytes in registers, and what 64 byte indices find in them.
struct ByteTable {
  __m512i quarter[4];

  explicit ByteTable(const std::uint8_t* bytes) {
    for (std::size_t i = 0; i < 4; ++i) quarter[i] = _mm512_loadu_si512(bytes + 64 * i);
  }
  __m512i look_up(__m512i index, __mmask64 upper_half) const {
    const __m512i low = _mm512_permutex2var_epi8(quarter[0], index, quarter[1]);
    const __m512i high = _mm512_permutex2var_epi8(quarter[2], index, quarter[3]);
    return _mm512_mask_blend_epi8(upper_half, low, high);
  }
};

}  // namespace
}  // namespace tailrace::trz::TRZ_ISA
