// Groups of 64 codes, compiled once per instruction set: see group_kernels.hpp.
//
// Splitting and joining are in group_avx512.hpp and group_portable.hpp, the transposition of bits
// in group_planes.hpp. Bit packing needs little more code and is in this file, in both forms.

#include "trz/kernels/group_kernels.hpp"

#include <cstring>

#include "trz/kernels/group_planes.hpp"

#if defined(TRZ_GROUP_AVX512)
#include "trz/kernels/group_avx512.hpp"
#else
#include "trz/kernels/group_portable.hpp"
#endif

namespace tailrace::trz::TRZ_ISA {
namespace {

inline std::size_t bits_of(std::uint32_t x) {
  return x == 0 ? 0 : 32 - static_cast<std::size_t>(__builtin_clz(x));
}

#if defined(TRZ_GROUP_AVX512)

inline __m512i zigzag(__m512i codes) {
  return _mm512_xor_si512(_mm512_slli_epi32(codes, 1), _mm512_srai_epi32(codes, 31));
}

inline __m512i unzigzag(__m512i words) {
  const __m512i sign =
      _mm512_sub_epi32(_mm512_setzero_si512(), _mm512_and_si512(words, _mm512_set1_epi32(1)));
  return _mm512_xor_si512(_mm512_srli_epi32(words, 1), sign);
}

std::uint8_t* pack(const std::int32_t* codes, std::size_t n_groups, std::uint8_t* widths,
                   std::uint8_t* planes) {
  for (std::size_t g = 0; g < n_groups; ++g, codes += kGroupCodes) {
    Group words = load_group(codes);
    for (__m512i& word : words.at) word = zigzag(word);
    const __m512i all = _mm512_or_si512(_mm512_or_si512(words.at[0], words.at[1]),
                                        _mm512_or_si512(words.at[2], words.at[3]));
    const std::size_t width = bits_of(static_cast<std::uint32_t>(_mm512_reduce_or_epi32(all)));
    widths[g] = static_cast<std::uint8_t>(width);
    planes = put_planes(words, width, planes);
  }
  return planes;
}

const std::uint8_t* unpack(const std::uint8_t* widths, std::size_t n_groups,
                           const std::uint8_t* planes, std::int32_t* codes) {
  // Bit matrix of c = (z >> 1) ^ -(z & 1) for eight bits: bit i of c is bit i + 1 of z XOR bit 0.
  const __m512i unzigzag_bits = _mm512_set1_epi64(0x0305091121418101);
  for (std::size_t g = 0; g < n_groups; ++g, codes += kGroupCodes) {
    const std::size_t width = widths[g];
    if (width <= 8) {
      const __m512i bytes = bytes_of_planes(planes, width);
      widen(_mm512_gf2p8affine_epi64_epi8(bytes, unzigzag_bits, 0), codes);
    } else {
      const Group words = words_of_planes(planes, width);
      for (std::size_t i = 0; i < 4; ++i) {
        _mm512_storeu_si512(codes + 16 * i, unzigzag(words.at[i]));
      }
    }
    planes += kPlaneBytes * width;
  }
  return planes;
}

#else

std::uint8_t* pack(const std::int32_t* codes, std::size_t n_groups, std::uint8_t* widths,
                   std::uint8_t* planes) {
  for (std::size_t g = 0; g < n_groups; ++g, codes += kGroupCodes) {
    std::uint32_t words[kGroupCodes];
    std::uint32_t all = 0;
    for (std::size_t i = 0; i < kGroupCodes; ++i) {
      words[i] =
          (static_cast<std::uint32_t>(codes[i]) << 1) ^ static_cast<std::uint32_t>(codes[i] >> 31);
      all |= words[i];
    }
    const std::size_t width = bits_of(all);
    widths[g] = static_cast<std::uint8_t>(width);
    planes = put_planes(words, width, planes);
  }
  return planes;
}

const std::uint8_t* unpack(const std::uint8_t* widths, std::size_t n_groups,
                           const std::uint8_t* planes, std::int32_t* codes) {
  for (std::size_t g = 0; g < n_groups; ++g, codes += kGroupCodes) {
    const std::size_t width = widths[g];
    if (width <= 8) {
      Bytes bytes;
      bytes_of_planes(planes, width, bytes);
      for (std::uint8_t& z : bytes.at) z = static_cast<std::uint8_t>((z >> 1) ^ (0 - (z & 1)));
      widen(bytes, codes);
    } else {
      std::uint32_t words[kGroupCodes];
      words_of_planes(planes, width, words);
      for (std::size_t i = 0; i < kGroupCodes; ++i) {
        codes[i] = static_cast<std::int32_t>((words[i] >> 1) ^ (0U - (words[i] & 1)));
      }
    }
    planes += kPlaneBytes * width;
  }
  return planes;
}

#endif

}  // namespace

extern const GroupKernels group_kernels_table = {TRZ_ENCODES(split), join, TRZ_ENCODES(pack),
                                                 unpack};

}  // namespace tailrace::trz::TRZ_ISA
