// The pointwise transform's kernels. One source for every instruction set; see isa.hpp.
//
// Plain loops that the compiler vectorises; every floating-point operation is a single IEEE
// operation in the order written, so all builds agree. Only the packing and unpacking of sign bits
// uses intrinsics.

#include "trz/kernels/pointwise_kernels.hpp"

#include <cstring>

#if TRZ_X86
#include <immintrin.h>
#endif

#ifndef TRZ_ISA
#define TRZ_ISA plain
#endif

namespace tailrace::trz::TRZ_ISA {
namespace {

constexpr std::size_t kBlock = kPointwiseBlock;

/// The layout of a floating-point type, and the constants of the map in it. kB is sqrt(2) + 1
/// rounded to the type and kA is kB + 1, which is exact in both.
template <class Y>
struct Form;
template <>
struct Form<float> {
  using Word = std::uint32_t;
  static constexpr int kMantissaBits = 23;
  static constexpr Word kSign = 0x80000000U;
  static constexpr Word kMantissa = 0x007FFFFFU;
  static constexpr Word kOne = 0x3F800000U;
  static constexpr Word kIntegerExponent = 0x4B000000U;  // The exponent of 2^23: the ulp is 1.
  static constexpr float kIntegerBase = 8388608.0F + 127.0F;
  static constexpr float kRound = 12582912.0F;  // 1.5 * 2^23
  static constexpr float kB = 0x1.3504f40000000p+1F;
  static constexpr float kLeast = 0x1p-125F;
  static constexpr float kBeyond = 0x1p127F;
  static constexpr float kSurelyNormal = 0x1p-100F;
};
template <>
struct Form<double> {
  using Word = std::uint64_t;
  static constexpr int kMantissaBits = 52;
  static constexpr Word kSign = 0x8000000000000000U;
  static constexpr Word kMantissa = 0x000FFFFFFFFFFFFFU;
  static constexpr Word kOne = 0x3FF0000000000000U;
  static constexpr Word kIntegerExponent = 0x4330000000000000U;
  static constexpr double kIntegerBase = 4503599627370496.0 + 1023.0;
  static constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
  static constexpr double kB = 0x1.3504f333f9de6p+1;
  static constexpr double kLeast = 0x1p-1021;
  static constexpr double kBeyond = 0x1p1023;
  static constexpr double kSurelyNormal = 0x1p-900;
};

/// Range to which y is clamped: the normal numbers of the values' type.
template <class T>
struct Reach;
template <>
struct Reach<float> {
  static constexpr float kLow = -126.0F;
  static constexpr float kHigh = 127.96875F;
};
template <>
struct Reach<double> {
  static constexpr double kLow = -1022.0;
  static constexpr double kHigh = 1023.96875;
};

template <class To, class From>
inline To as(From from) {
  static_assert(sizeof(To) == sizeof(From), "bits are kept");
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

template <class T>
inline T magnitude(T x) {
  using F = Form<T>;
  return as<T>(static_cast<typename F::Word>(as<typename F::Word>(x) & ~F::kSign));
}

template <class Y>
inline Y forward_one(Y z) {
  using F = Form<Y>;
  using Word = typename F::Word;
  const Word bits = as<Word>(z);
  const Y exponent =
      as<Y>(static_cast<Word>(F::kIntegerExponent | (bits >> F::kMantissaBits))) - F::kIntegerBase;
  const Y mantissa = as<Y>(static_cast<Word>((bits & F::kMantissa) | F::kOne));
  const Y t = mantissa - 1;
  const Y numerator = (F::kB + 1) * t;
  const Y denominator = t + F::kB;
  return exponent + numerator / denominator;
}

/// Select `yes` or `no` by masks, since branches would prevent vectorisation. SSE2 lacks 64-bit
/// masks, so there doubles use a conditional expression.
template <class Y>
inline Y select(bool condition, Y yes, Y no) {
#if TRZ_X86 && !defined(__AVX2__)
  if constexpr (sizeof(Y) == 8) return condition ? yes : no;
#endif
  using Word = typename Form<Y>::Word;
  const auto mask = static_cast<Word>(-static_cast<Word>(condition));
  return as<Y>(static_cast<Word>((as<Word>(yes) & mask) | (as<Word>(no) & ~mask)));
}

/// The inverse of forward_one(). y is clamped so that the exponent fits for any y.
template <class T, class Y>
inline Y inverse_one(Y y) {
  using F = Form<Y>;
  using Word = typename F::Word;
  constexpr Y low = Reach<T>::kLow;
  constexpr Y high = Reach<T>::kHigh;
  y = select(y > low, y, low);  // also for a NaN
  y = select(y < high, y, high);
  const Y shifted = (y - static_cast<Y>(0.5)) + F::kRound;
  const Y f = y - (shifted - F::kRound);
  const Y numerator = f * F::kB;
  const Y denominator = (F::kB + 1) - f;
  const Y mantissa = 1 + numerator / denominator;
  return as<Y>(static_cast<Word>(as<Word>(mantissa) + (as<Word>(shifted) << F::kMantissaBits)));
}

// --- bits of 64 values ---------------------------------------------------------------------------

inline std::uint64_t sign_word(const float* values) {
  std::uint64_t word = 0;
#if defined(__AVX512DQ__)
  for (std::size_t i = 0; i < kBlock; i += 16) {
    const __m512i bits = _mm512_loadu_si512(values + i);
    word |= static_cast<std::uint64_t>(_mm512_movepi32_mask(bits)) << i;
  }
#elif defined(__AVX2__)
  for (std::size_t i = 0; i < kBlock; i += 8) {
    const int eight = _mm256_movemask_ps(_mm256_loadu_ps(values + i));
    word |= static_cast<std::uint64_t>(static_cast<unsigned>(eight)) << i;
  }
#elif defined(__SSE2__)
  for (std::size_t i = 0; i < kBlock; i += 4) {
    const int four = _mm_movemask_ps(_mm_loadu_ps(values + i));
    word |= static_cast<std::uint64_t>(static_cast<unsigned>(four)) << i;
  }
#else
  for (std::size_t i = 0; i < kBlock; ++i) {
    word |= static_cast<std::uint64_t>(as<std::uint32_t>(values[i]) >> 31) << i;
  }
#endif
  return word;
}

inline std::uint64_t sign_word(const double* values) {
  std::uint64_t word = 0;
#if defined(__AVX512DQ__)
  for (std::size_t i = 0; i < kBlock; i += 8) {
    const __m512i bits = _mm512_loadu_si512(values + i);
    word |= static_cast<std::uint64_t>(_mm512_movepi64_mask(bits)) << i;
  }
#elif defined(__AVX2__)
  for (std::size_t i = 0; i < kBlock; i += 4) {
    const int four = _mm256_movemask_pd(_mm256_loadu_pd(values + i));
    word |= static_cast<std::uint64_t>(static_cast<unsigned>(four)) << i;
  }
#elif defined(__SSE2__)
  for (std::size_t i = 0; i < kBlock; i += 2) {
    const int two = _mm_movemask_pd(_mm_loadu_pd(values + i));
    word |= static_cast<std::uint64_t>(static_cast<unsigned>(two)) << i;
  }
#else
  for (std::size_t i = 0; i < kBlock; ++i) {
    word |= (as<std::uint64_t>(values[i]) >> 63) << i;
  }
#endif
  return word;
}

/// Set the sign of value i to bit i of `word`; all values are positive before.
template <class T>
inline void put_signs(std::uint64_t word, T* values) {
  using Word = typename Form<T>::Word;
  if (word == 0) return;
  for (std::size_t i = 0; i < kBlock; i += 8) {
    const Word eight = static_cast<Word>((word >> i) & 255U);
    for (std::size_t j = 0; j < 8; ++j) {
      const Word one = Word{1} << j;
      const Word sign = (eight & one) == one ? Form<T>::kSign : Word{0};
      values[i + j] = as<T>(static_cast<Word>(as<Word>(values[i + j]) | sign));
    }
  }
}

/// Pack flags, 0 or 1 each, into a word.
inline std::uint64_t flag_word(const std::uint32_t* flags) {
  std::uint64_t word = 0;
#if defined(__AVX512F__)
  for (std::size_t i = 0; i < kBlock; i += 16) {
    const __m512i some = _mm512_loadu_si512(flags + i);
    word |= static_cast<std::uint64_t>(_mm512_test_epi32_mask(some, some)) << i;
  }
#else
  for (std::size_t i = 0; i < kBlock; ++i) word |= static_cast<std::uint64_t>(flags[i]) << i;
#endif
  return word;
}

inline std::uint64_t flag_word(const std::uint64_t* flags) {
  std::uint64_t word = 0;
#if defined(__AVX512F__)
  for (std::size_t i = 0; i < kBlock; i += 8) {
    const __m512i some = _mm512_loadu_si512(flags + i);
    word |= static_cast<std::uint64_t>(_mm512_test_epi64_mask(some, some)) << i;
  }
#else
  for (std::size_t i = 0; i < kBlock; ++i) word |= flags[i] << i;
#endif
  return word;
}

// --- the three passes ----------------------------------------------------------------------------

template <class T, class Y>
bool forward(const T* values, std::size_t n_blocks, const PointwiseForward<T, Y>& settings, Y* y,
             std::uint8_t* sign_bits, std::uint64_t* exceptions) {
  using Word = typename Form<T>::Word;
  const Y scale = settings.scale;
  const T fill = settings.fill;
  std::uint64_t found = 0;
  for (std::size_t block = 0; block < n_blocks; ++block) {
    Word flags[kBlock];
    Word any = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      const T x = magnitude(values[i]);
      const bool ordinary = (x >= Form<T>::kLeast) & (x < Form<T>::kBeyond) & (values[i] != fill);
      flags[i] = static_cast<Word>(!ordinary);
      any |= flags[i];
    }
    for (std::size_t i = 0; i < kBlock; ++i) {
      y[i] = forward_one<Y>(scale * static_cast<Y>(magnitude(values[i])));
    }
    const std::uint64_t signs = sign_word(values);
    for (std::size_t i = 0; i < 8; ++i) sign_bits[i] = static_cast<std::uint8_t>(signs >> (8 * i));
    exceptions[block] = any == 0 ? 0 : flag_word(flags);
    found |= exceptions[block];
    values += kBlock;
    y += kBlock;
    sign_bits += 8;
  }
  return found != 0;
}

template <class T, class Y>
void inverse(const Y* y, const std::uint8_t* sign_bits, std::size_t n_blocks, T* values) {
  for (std::size_t block = 0; block < n_blocks; ++block) {
    T decoded[kBlock];  // values may be y's memory
    for (std::size_t i = 0; i < kBlock; ++i) decoded[i] = static_cast<T>(inverse_one<T>(y[i]));
    std::uint64_t signs = 0;
    for (std::size_t i = 0; i < 8; ++i)
      signs |= static_cast<std::uint64_t>(sign_bits[i]) << (8 * i);
    put_signs(signs, decoded);
    std::memcpy(values, decoded, sizeof decoded);
    values += kBlock;
    y += kBlock;
    sign_bits += 8;
  }
}

template <class T, class Y>
bool check(const T* values, const Y* y, std::size_t n_blocks, T bound_below,
           std::uint64_t* exceptions) {
  using Word = typename Form<T>::Word;
  std::uint64_t found = 0;
  for (std::size_t block = 0; block < n_blocks; ++block) {
    Word flags[kBlock];
    Word any = 0;
    for (std::size_t i = 0; i < kBlock; ++i) {
      const T x = magnitude(values[i]);
      const T decoded = static_cast<T>(inverse_one<T>(y[i]));
      const bool good = (x >= Form<T>::kSurelyNormal) & (magnitude(x - decoded) <= bound_below * x);
      flags[i] = static_cast<Word>(!good);
      any |= flags[i];
    }
    exceptions[block] = any == 0 ? 0 : flag_word(flags);
    found |= exceptions[block];
    values += kBlock;
    y += kBlock;
  }
  return found != 0;
}

}  // namespace

extern const PointwiseKernels pointwise_kernels_table = {
    {TRZ_ENCODES(forward<float, float>), inverse<float, float>, TRZ_ENCODES(check<float, float>)},
    {TRZ_ENCODES(forward<float, double>), inverse<float, double>,
     TRZ_ENCODES(check<float, double>)},
    {TRZ_ENCODES(forward<double, double>), inverse<double, double>,
     TRZ_ENCODES(check<double, double>)},
};

}  // namespace tailrace::trz::TRZ_ISA
