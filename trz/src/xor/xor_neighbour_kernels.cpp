// Neighbour kernels: xor values with their neighbours, and restore values from the residuals.
//
// The number of neighbours is a constant in each loop, so that the compiler vectorises it.

#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#include "xor/xor_widths.hpp"

namespace tailrace::neighbour_xor::XOR_BUILD {
namespace {

/// Size of a decoder step: neighbours at least this far away belong to earlier steps.
constexpr std::size_t kStep = 32;

/// Element type of the chunk's bytes, independent of their type and alignment there.
template <std::size_t n_bytes>
struct ElementOf;
template <>
struct ElementOf<1> {
  using Bits = std::uint8_t;
  using Word = std::uint32_t;
  using Stored = std::uint8_t;
};
template <>
struct ElementOf<2> {
  using Bits = std::uint16_t;
  using Word = std::uint32_t;
  typedef Bits Stored __attribute__((aligned(1), may_alias));
};
template <>
struct ElementOf<4> {
  using Bits = std::uint32_t;
  using Word = std::uint32_t;
  typedef Bits Stored __attribute__((aligned(1), may_alias));
};
template <>
struct ElementOf<8> {
  using Bits = std::uint64_t;
  using Word = std::uint64_t;
  typedef Bits Stored __attribute__((aligned(1), may_alias));
};

/// Call `work(begin, end, n_terms)` for each stretch of a block in which the same neighbours lie
/// within the chunk.
template <class Work>
void for_stretches(std::size_t position, std::size_t n, const Terms& terms, Work&& work) {
  unsigned n_terms = 0;
  for (std::size_t begin = 0; begin < n;) {
    while (n_terms < terms.n && terms.distances[n_terms] <= position + begin) ++n_terms;
    std::size_t end = n;
    if (n_terms < terms.n && terms.distances[n_terms] - position < n) {
      end = terms.distances[n_terms] - position;
    }
    work(begin, end, n_terms);
    begin = end;
  }
}

template <unsigned n_terms, std::size_t n_bytes>
void xor_stretch(const typename ElementOf<n_bytes>::Stored* values, const std::size_t* distances,
                 std::size_t n, typename ElementOf<n_bytes>::Word* __restrict words) {
  using Element = typename ElementOf<n_bytes>::Bits;
  for (std::size_t i = 0; i < n; ++i) {
    Element word = values[i];
    for (unsigned t = 0; t < n_terms; ++t) {
      word = static_cast<Element>(word ^ *(values + i - distances[t]));
    }
    words[i] = word;
  }
}

template <std::size_t n_bytes>
void residuals(const void* values, std::size_t position, std::size_t n, const Terms& terms,
               BlockWords& block) {
  using Element = typename ElementOf<n_bytes>::Stored;
  using Word = typename ElementOf<n_bytes>::Word;
  const Element* from = static_cast<const Element*>(values) + position;
  Word* words = words_of<Word>(block);
  const std::size_t* d = terms.distances;
  for_stretches(position, n, terms, [&](std::size_t begin, std::size_t end, unsigned n_terms) {
    const Element* x = from + begin;
    Word* to = words + begin;
    const std::size_t m = end - begin;
    switch (n_terms) {
      case 0: return xor_stretch<0, n_bytes>(x, d, m, to);
      case 1: return xor_stretch<1, n_bytes>(x, d, m, to);
      case 2: return xor_stretch<2, n_bytes>(x, d, m, to);
      case 3: return xor_stretch<3, n_bytes>(x, d, m, to);
      case 4: return xor_stretch<4, n_bytes>(x, d, m, to);
      case 5: return xor_stretch<5, n_bytes>(x, d, m, to);
      case 6: return xor_stretch<6, n_bytes>(x, d, m, to);
      default: return xor_stretch<7, n_bytes>(x, d, m, to);
    }
  });
  for (std::size_t i = n; i % kGroupValues != 0; ++i) words[i] = 0;
}

/// Compute words[i] ^= words[i - 1], starting with `carry`.
template <class Word>
std::uint64_t running_xor_of(Word* words, std::size_t n, std::uint64_t carry) {
  auto running = static_cast<Word>(carry);
  for (std::size_t i = 0; i < n; ++i) {
    running ^= words[i];
    words[i] = running;
  }
  return running;
}

#if defined(__AVX2__)

std::uint64_t running_xor(std::uint32_t* words, std::size_t n, std::uint64_t carry) {
  __m256i last = _mm256_set1_epi32(static_cast<int>(carry));
  const __m256i eighth = _mm256_set1_epi32(7);
  std::size_t i = 0;
  for (; i + 8 <= n; i += 8) {
    __m256i v = load_vector(words + i);
    v = _mm256_xor_si256(v, _mm256_slli_si256(v, 4));
    v = _mm256_xor_si256(v, _mm256_slli_si256(v, 8));
    // Copy the low half's last word to all words of the high half.
    const __m256i low = _mm256_shuffle_epi32(_mm256_permute2x128_si256(v, v, 0x08), 0xFF);
    v = _mm256_xor_si256(v, low);
    const __m256i made = _mm256_xor_si256(v, last);
    last = _mm256_xor_si256(_mm256_permutevar8x32_epi32(v, eighth), last);
    store_vector(words + i, made);
  }
  carry = static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm256_castsi256_si128(last)));
  return running_xor_of(words + i, n - i, carry);
}

std::uint64_t running_xor(std::uint64_t* words, std::size_t n, std::uint64_t carry) {
  __m256i last = _mm256_set1_epi64x(static_cast<long long>(carry));
  std::size_t i = 0;
  for (; i + 4 <= n; i += 4) {
    __m256i v = load_vector(words + i);
    v = _mm256_xor_si256(v, _mm256_slli_si256(v, 8));
    const __m256i low = _mm256_shuffle_epi32(_mm256_permute2x128_si256(v, v, 0x08), 0xEE);
    v = _mm256_xor_si256(v, low);
    const __m256i made = _mm256_xor_si256(v, last);
    last = _mm256_xor_si256(_mm256_permute4x64_epi64(v, 0xFF), last);
    store_vector(words + i, made);
  }
  carry = static_cast<std::uint64_t>(_mm_cvtsi128_si64(_mm256_castsi256_si128(last)));
  return running_xor_of(words + i, n - i, carry);
}

#else

template <class Word>
std::uint64_t running_xor(Word* words, std::size_t n, std::uint64_t carry) {
  return running_xor_of(words, n, carry);
}

#endif

/// Compute values[i] = words[i] xored with its neighbours.
template <unsigned n_terms, std::size_t n_bytes>
void restore_stretch(const typename ElementOf<n_bytes>::Word* words, const std::size_t* distances,
                     std::size_t n, typename ElementOf<n_bytes>::Stored* values) {
  using Element = typename ElementOf<n_bytes>::Bits;
  std::size_t i = 0;
  if (n_terms == 0 || distances[0] >= kStep) {
    for (; i + kStep <= n; i += kStep) {
      Element made[kStep];
      for (std::size_t k = 0; k < kStep; ++k) {
        auto word = static_cast<Element>(words[i + k]);
        for (unsigned t = 0; t < n_terms; ++t) {
          word = static_cast<Element>(word ^ *(values + i + k - distances[t]));
        }
        made[k] = word;
      }
      std::memcpy(values + i, made, sizeof made);
    }
  }
  for (; i < n; ++i) {
    auto word = static_cast<Element>(words[i]);
    for (unsigned t = 0; t < n_terms; ++t) {
      word = static_cast<Element>(word ^ *(values + i - distances[t]));
    }
    values[i] = word;
  }
}

template <std::size_t n_bytes>
void restore(BlockWords& block, const Terms& terms, std::uint64_t* carry, void* values,
             std::size_t position, std::size_t n) {
  using Element = typename ElementOf<n_bytes>::Stored;
  using Word = typename ElementOf<n_bytes>::Word;
  Word* words = words_of<Word>(block);
  if (carry != nullptr) *carry = running_xor(words, n, *carry);
  Element* to = static_cast<Element*>(values) + position;
  const std::size_t* d = terms.distances;
  for_stretches(position, n, terms, [&](std::size_t begin, std::size_t end, unsigned n_terms) {
    Element* x = to + begin;
    const Word* from = words + begin;
    const std::size_t m = end - begin;
    switch (n_terms) {
      case 0: return restore_stretch<0, n_bytes>(from, d, m, x);
      case 1: return restore_stretch<1, n_bytes>(from, d, m, x);
      case 2: return restore_stretch<2, n_bytes>(from, d, m, x);
      case 3: return restore_stretch<3, n_bytes>(from, d, m, x);
      case 4: return restore_stretch<4, n_bytes>(from, d, m, x);
      case 5: return restore_stretch<5, n_bytes>(from, d, m, x);
      case 6: return restore_stretch<6, n_bytes>(from, d, m, x);
      default: return restore_stretch<7, n_bytes>(from, d, m, x);
    }
  });
}

}  // namespace

extern const Kernels kernels;
const Kernels kernels = {{residuals<1>, residuals<2>, residuals<4>, residuals<8>},
                         {restore<1>, restore<2>, restore<4>, restore<8>},
                         {pack_block<std::uint32_t>, pack_block<std::uint64_t>},
                         {block_cost<std::uint32_t>, block_cost<std::uint64_t>},
                         {unpack_block<std::uint32_t>, unpack_block<std::uint64_t>}};

}  // namespace tailrace::neighbour_xor::XOR_BUILD
