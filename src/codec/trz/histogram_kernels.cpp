// Counting bytes, once per instruction set; all builds give the same counts.
//
// Counting is scalar in all of them: four tables, so that equal bytes in a row do not wait for each
// other's store. The search for unseen values looks 64 bytes at a time up in registers.

#include "codec/trz/histogram_kernels.hpp"

#include <cstring>

#if defined(__AVX512VBMI2__)
#include "codec/trz/byte_table_avx512.hpp"
#elif defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tailrace::trz::TRZ_ISA {
namespace {

struct Tally {
  std::uint32_t tables[4][256] = {};

  void add(const std::uint8_t* bytes, std::size_t n) {
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
      std::uint64_t word;
      std::memcpy(&word, bytes + i, sizeof word);
      ++tables[0][word & 0xFF];
      ++tables[1][(word >> 8) & 0xFF];
      ++tables[2][(word >> 16) & 0xFF];
      ++tables[3][(word >> 24) & 0xFF];
      ++tables[0][(word >> 32) & 0xFF];
      ++tables[1][(word >> 40) & 0xFF];
      ++tables[2][(word >> 48) & 0xFF];
      ++tables[3][word >> 56];
    }
    for (; i < n; ++i) ++tables[0][bytes[i]];
  }
  void add_to(std::uint32_t* histogram) const {
    for (std::size_t s = 0; s < 256; ++s) {
      histogram[s] += tables[0][s] + tables[1][s] + tables[2][s] + tables[3][s];
    }
  }
};

void count(const std::uint8_t* bytes, std::size_t n, std::uint32_t* histogram) {
  if (n < 1024) {
    for (std::size_t i = 0; i < n; ++i) ++histogram[bytes[i]];
    return;
  }
  Tally tally;
  tally.add(bytes, n);
  tally.add_to(histogram);
}

std::size_t count_sample(const std::uint8_t* bytes, std::size_t n, std::size_t window_bytes,
                         std::uint32_t* histogram) {
  Tally tally;
  std::size_t n_counted = 0;
  std::uint32_t scattered = 0;
  for (std::size_t begin = 0; begin + window_bytes <= n; begin += window_bytes) {
    scattered += 0x9E3779B1U;  // 2^32 over the golden ratio: evenly scattered, never periodic.
    const std::size_t at = (scattered >> 16) * (window_bytes - kSampleRunBytes) >> 16;
    tally.add(bytes + begin + at, kSampleRunBytes);
    n_counted += kSampleRunBytes;
  }
  tally.add_to(histogram);
  return n_counted;
}

#if defined(__AVX512VBMI2__)

std::size_t find_unseen(const std::uint8_t* bytes, std::size_t n, const std::uint8_t* seen) {
  const ByteTable table(seen);
  for (std::size_t i = 0; i < n; i += 64) {
    const __m512i index = _mm512_loadu_si512(bytes + i);
    const __m512i found = table.look_up(index, _mm512_movepi8_mask(index));
    if (_mm512_testn_epi8_mask(found, found) != 0) return i;
  }
  return n;
}

#elif defined(__AVX2__)

/// A bit per value: byte 16 k + l of the two tables has those of the low nibble l and the high
/// nibbles 8 k to 8 k + 7.
std::size_t find_unseen(const std::uint8_t* bytes, std::size_t n, const std::uint8_t* seen) {
  std::uint8_t bits[32] = {};
  for (unsigned v = 0; v < 256; ++v) {
    bits[(v >> 7) * 16 + (v & 15)] =
        static_cast<std::uint8_t>(bits[(v >> 7) * 16 + (v & 15)] | seen[v] << (v >> 4 & 7));
  }
  const auto both_lanes = [](const std::uint8_t* table) {
    __m128i lane;
    std::memcpy(&lane, table, sizeof lane);
    return _mm256_broadcastsi128_si256(lane);
  };
  const __m256i lower = both_lanes(bits);
  const __m256i upper = both_lanes(bits + 16);
  const std::uint8_t powers[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
  const __m256i power = both_lanes(powers);
  const __m256i top = _mm256_set1_epi8(static_cast<char>(0x80));
  const __m256i top_and_low = _mm256_set1_epi8(static_cast<char>(0x8F));
  const __m256i nibble = _mm256_set1_epi8(0x0F);
  for (std::size_t i = 0; i < n; i += 64) {
    __m256i unseen = _mm256_setzero_si256();
    for (unsigned half = 0; half < 64; half += 32) {
      __m256i value;
      std::memcpy(&value, bytes + i + half, sizeof value);
      // A look-up gives 0 where the index's top bit is set.
      const __m256i low = _mm256_and_si256(value, top_and_low);
      const __m256i row = _mm256_or_si256(_mm256_shuffle_epi8(lower, low),
                                          _mm256_shuffle_epi8(upper, _mm256_xor_si256(low, top)));
      const __m256i high = _mm256_and_si256(_mm256_srli_epi16(value, 4), nibble);
      const __m256i found = _mm256_and_si256(row, _mm256_shuffle_epi8(power, high));
      unseen = _mm256_or_si256(unseen, _mm256_cmpeq_epi8(found, _mm256_setzero_si256()));
    }
    if (_mm256_movemask_epi8(unseen) != 0) return i;
  }
  return n;
}

#else

/// Counting is the fastest way to look bytes up here; a stretch is searched if a count says so.
/// Stretches grow: where one value is unseen, others are near.
std::size_t find_unseen(const std::uint8_t* bytes, std::size_t n, const std::uint8_t* seen) {
  std::size_t stretch = 512;
  for (std::size_t begin = 0; begin < n; begin += stretch) {
    if (begin != 0 && stretch < 16384) stretch *= 2;
    const std::size_t end = n - begin < stretch ? n : begin + stretch;
    Tally tally;
    tally.add(bytes + begin, end - begin);
    std::uint32_t counts[256] = {};
    tally.add_to(counts);
    bool found = false;
    for (std::size_t s = 0; s < 256; ++s) found = found || (counts[s] != 0 && seen[s] == 0);
    for (std::size_t i = begin; found && i < end; ++i) {
      if (seen[bytes[i]] == 0) return i / 64 * 64;
    }
  }
  return n;
}

#endif

}  // namespace

extern const HistogramKernels histogram_kernels_table;
const HistogramKernels histogram_kernels_table = {count, count_sample, find_unseen};

}  // namespace tailrace::trz::TRZ_ISA
