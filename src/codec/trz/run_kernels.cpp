// Runs of one byte as digits, once per instruction set; all builds give the same tokens.
//
// Encoding looks at 64 bytes at a time and visits those that differ from the common one; the digits
// of the run before are looked up and stored as a word. Decoding fills the output with the
// common byte and walks over the tokens without a branch that depends on them.

#include "codec/trz/run_kernels.hpp"

#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tailrace::trz::TRZ_ISA {
namespace {

[[maybe_unused]] constexpr std::uint64_t kEachByte = 0x0101010101010101U;

/// Bit i: bytes[i] differs from `common`, i = 0..63.
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
    // The top bit of each byte that is not 0, then the eight of them side by side.
    const std::uint64_t tops = (((word & (0x7F * kEachByte)) + 0x7F * kEachByte) | word) >> 7;
    mask |= ((tops & kEachByte) * 0x0102040810204080U >> 56) << (8 * i);
  }
  return mask;
#endif
}

/// The digits of a run: those of n_run + 1 in the usual system, without its leading 1.
inline std::uint8_t* put_run(std::size_t n_run, std::uint8_t common, std::uint8_t spare,
                             std::uint8_t* out) {
  for (std::size_t digits = n_run + 1; digits > 1; digits >>= 1) {
    *out++ = (digits & 1) != 0 ? spare : common;
  }
  return out;
}

/// put_run() for runs of fewer than 64, looked up.
struct ShortRuns {
  std::uint64_t digits[64];  // In order of memory, 0 behind the last one.
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
  std::size_t begin = 0;  // Behind the last byte that was not common.
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

/// What a token does.
struct TokenRule {
  std::uint64_t mask;    ///< All ones for a digit, by which its weight counts; else 0.
  std::uint8_t doubles;  ///< 1 for digit 2.
  std::uint8_t byte;     ///< To be stored where the output stands.
};

bool decode(const std::uint8_t* tokens, std::size_t n_tokens, std::uint8_t common,
            std::uint8_t spare, std::uint8_t* bytes, std::size_t n) {
  TokenRule rules[256];
  for (unsigned t = 0; t < 256; ++t) rules[t] = {0, 0, static_cast<std::uint8_t>(t)};
  // A run's first byte is common as well: one store serves all tokens.
  rules[common] = {~std::uint64_t{0}, 0, common};
  rules[spare] = {~std::uint64_t{0}, 1, common};
  std::memset(bytes, common, n);
  std::size_t at = 0;
  std::size_t spread = 0;  // The next digit's weight less 1; at most n, for `at` grows as fast.
  for (std::size_t i = 0; i < n_tokens; ++i) {
    if (at >= n) return false;
    const TokenRule& rule = rules[tokens[i]];
    bytes[at] = rule.byte;
    // No branch: literals and digits alternate as good as randomly.
    at += ((spread & rule.mask) + 1) << rule.doubles;
    spread = (2 * spread + 1) & rule.mask;
  }
  return at == n;
}

}  // namespace

extern const RunKernels run_kernels_table;
const RunKernels run_kernels_table = {encode, decode};

}  // namespace tailrace::trz::TRZ_ISA
