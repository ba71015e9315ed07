// Counts bytes, and codes runs of one byte as digits. Compiled once per instruction set; all builds
// give the same results.

#include "trz/kernels/byte_kernels.hpp"

#include <cstring>

#if defined(__AVX512VBMI2__)
#include "trz/kernels/kernel_vectors.hpp"
#elif defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tailrace::trz::TRZ_ISA {

// --- Counting bytes, once per instruction set; all builds give the same counts.
//
// Counting is scalar in all builds. It uses four tables, so that successive equal bytes do not wait
// for each other's store. The search for unseen values looks up 64 bytes at a time in registers.

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
    scattered += 0x9E3779B1U;  // 2^32 / golden ratio: evenly distributed, without a short period.
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

/// Search with two tables of one bit per value. Byte 16 k + l has the bits of the values with low
/// nibble l and high nibble 8 k to 8 k + 7.
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
      // A look-up returns 0 if the top bit of its index is set.
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

/// Search by counting, the fastest way to look up bytes in this build. A stretch is searched only
/// if its counts contain an unseen value. Stretches grow, since unseen values often come in groups.
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
const HistogramKernels histogram_kernels_table = {TRZ_ENCODES(count), TRZ_ENCODES(count_sample),
                                                  TRZ_ENCODES(find_unseen)};

}  // namespace tailrace::trz::TRZ_ISA

// --- Runs of one byte as digits, once per instruction set; all builds give the same tokens.
//
// The encoder compares 64 bytes at a time and visits those that differ from the common byte. It
// looks up the digits of the preceding run and stores them as one word. The decoder fills the
// output with the common byte and processes the tokens without branches that depend on them.

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tailrace::trz::TRZ_ISA {
namespace {

[[maybe_unused]] constexpr std::uint64_t kEachByte = 0x0101010101010101U;

/// Bit mask of the bytes that differ from `common`: bit i is for bytes[i], i = 0..63.
inline std::uint64_t differing(const std::uint8_t* bytes, std::uint8_t common) {
#if defined(__AVX512BW__)
  return _mm512_cmpneq_epi8_mask(_mm512_loadu_si512(bytes),
                                 _mm512_set1_epi8(static_cast<char>(common)));
#elif defined(__AVX2__)
  const __m256i all = _mm256_set1_epi8(static_cast<char>(common));
  std::uint32_t same[2];
  for (std::size_t i = 0; i < 2; ++i) {
    __m256i half;
    std::memcpy(&half, bytes + 32 * i, sizeof half);
    same[i] = static_cast<std::uint32_t>(_mm256_movemask_epi8(_mm256_cmpeq_epi8(half, all)));
  }
  return ~(same[0] | (std::uint64_t{same[1]} << 32));
#else
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < 8; ++i) {
    std::uint64_t word;
    std::memcpy(&word, bytes + std::size_t{8} * i, sizeof word);
    word ^= kEachByte * common;
    // Set the low bit of each byte that is not 0, then gather the eight bits in one byte.
    const std::uint64_t tops = (((word & (0x7F * kEachByte)) + 0x7F * kEachByte) | word) >> 7;
    mask |= ((tops & kEachByte) * 0x0102040810204080U >> 56) << (8 * i);
  }
  return mask;
#endif
}

/// Write the digits of a run: the binary digits of n_run + 1 without its leading 1.
inline std::uint8_t* put_run(std::size_t n_run, std::uint8_t common, std::uint8_t spare,
                             std::uint8_t* out) {
  for (std::size_t digits = n_run + 1; digits > 1; digits >>= 1) {
    *out++ = (digits & 1) != 0 ? spare : common;
  }
  return out;
}

/// Table of put_run()'s results for runs of fewer than 64 bytes.
struct ShortRuns {
  std::uint64_t digits[64];  // Digits in memory order, followed by zeros.
  std::uint8_t n_digits[64];

  ShortRuns(std::uint8_t common, std::uint8_t spare) {
    for (unsigned n_run = 0; n_run < 64; ++n_run) {
      std::uint8_t bytes[8] = {};
      n_digits[n_run] = static_cast<std::uint8_t>(put_run(n_run, common, spare, bytes) - bytes);
      std::memcpy(&digits[n_run], bytes, sizeof bytes);
    }
  }
};

std::size_t encode(const std::uint8_t* bytes, std::size_t n, std::uint8_t common,
                   std::uint8_t spare, std::uint8_t* tokens) {
  const ShortRuns runs(common, spare);
  std::uint8_t* out = tokens;
  std::size_t begin = 0;  // One past the last byte that differs from `common`.
  std::size_t i = 0;
  for (; i + 64 <= n; i += 64) {
    for (std::uint64_t mask = differing(bytes + i, common); mask != 0; mask &= mask - 1) {
      const std::size_t at = i + static_cast<unsigned>(__builtin_ctzll(mask));
      const std::size_t n_run = at - begin;
      begin = at + 1;
      if (__builtin_expect(n_run >= 64, 0)) {
        out = put_run(n_run, common, spare, out);
        *out++ = bytes[at];
        continue;
      }
      const unsigned n_digits = runs.n_digits[n_run];
      const std::uint64_t word = runs.digits[n_run] | static_cast<std::uint64_t>(bytes[at])
                                                          << (8 * n_digits);
      std::memcpy(out, &word, sizeof word);
      out += n_digits + 1;
    }
  }
  for (; i < n; ++i) {
    if (bytes[i] == common) continue;
    out = put_run(i - begin, common, spare, out);
    *out++ = bytes[i];
    begin = i + 1;
  }
  return static_cast<std::size_t>(put_run(n - begin, common, spare, out) - tokens);
}

/// Effect of a token on the decoder.
struct TokenRule {
  std::uint64_t mask;    ///< All ones for a digit, so that its weight counts; else 0.
  std::uint8_t doubles;  ///< 1 for digit 2, else 0.
  std::uint8_t byte;     ///< Byte to store at the output position.
};

bool decode(const std::uint8_t* tokens, std::size_t n_tokens, std::uint8_t common,
            std::uint8_t spare, std::uint8_t* bytes, std::size_t n) {
  TokenRule rules[256];
  for (unsigned t = 0; t < 256; ++t) rules[t] = {0, 0, static_cast<std::uint8_t>(t)};
  // The first byte of a run is the common byte, so one store serves all tokens.
  rules[common] = {~std::uint64_t{0}, 0, common};
  rules[spare] = {~std::uint64_t{0}, 1, common};
  std::memset(bytes, common, n);
  std::size_t at = 0;
  std::size_t spread = 0;  // Weight of the next digit less 1; at most n, as `at` grows as fast.
  for (std::size_t i = 0; i < n_tokens; ++i) {
    if (at >= n) return false;
    const TokenRule& rule = rules[tokens[i]];
    bytes[at] = rule.byte;
    // No branch: the sequence of literals and digits is unpredictable.
    at += ((spread & rule.mask) + 1) << rule.doubles;
    spread = (2 * spread + 1) & rule.mask;
  }
  return at == n;
}

}  // namespace

extern const RunKernels run_kernels_table;
const RunKernels run_kernels_table = {TRZ_ENCODES(encode), decode};

}  // namespace tailrace::trz::TRZ_ISA
