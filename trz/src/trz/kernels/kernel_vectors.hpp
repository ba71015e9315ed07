// Code shared by kernel files: rounding to codes, strings of bits, and AVX-512 operations per
// element type.
//
// Only kernel files include this header, at file scope. It opens TRZ_ISA's anonymous namespace, so
// that every instruction set has its own copies.

#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "trz/kernels/isa.hpp"
#include "trz/predict/lattice.hpp"

#if defined(__AVX512VBMI2__)
#include <immintrin.h>
#endif

namespace tailrace::trz::TRZ_ISA {
namespace {

template <class T>
struct Rounding;

template <>
struct Rounding<float> {
  static inline std::int32_t quantise(float t) {
    const float u = t + kRoundF32;
    return static_cast<std::int32_t>(__builtin_bit_cast(std::uint32_t, u) -
                                     __builtin_bit_cast(std::uint32_t, kRoundF32));
  }
};

template <>
struct Rounding<double> {
  static inline std::int32_t quantise(double t) {
    const double u = t + kRoundF64;
    return static_cast<std::int32_t>(
        static_cast<std::uint32_t>(__builtin_bit_cast(std::uint64_t, u)));
  }
};

template <class T>
inline bool contains(const T* x, std::size_t stride, std::size_t n, T wanted) {
  std::int32_t found = 0;
  for (std::size_t i = 0; i < n; ++i) found |= x[i * stride] == wanted;
  return found != 0;
}

// Strings of bits, written from the top of each byte down.

inline std::uint64_t load64(const std::uint8_t* from) {
  std::uint64_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}

inline void store64(std::uint8_t* to, std::uint64_t word) { std::memcpy(to, &word, sizeof word); }

/// Writer of a string of bits. The low n_held bits of `held` are not stored yet.
struct BitWriter {
  std::uint8_t* out;
  std::uint64_t held;
  unsigned n_held;  // Fewer than 8 between calls.

  /// Append the low n_bits <= 48 of `bits`. Overwrites 8 bytes of the output.
  void put(std::uint64_t bits, unsigned n_bits) {
    held = (held << n_bits) | bits;
    n_held += n_bits;
    store64(out, __builtin_bswap64(held << (63 - n_held) << 1));
    out += n_held >> 3;
    n_held &= 7;
  }
};

#if defined(__AVX512VBMI2__)

// --- AVX-512 -----------------------------------------------------------------------------------

/// Vector operations of one element type, so that one loop serves both types.
template <class T>
struct Wide;

template <>
struct Wide<float> {
  using Vector = __m512;
  using Mask = __mmask16;
  static constexpr std::size_t n_lanes = 16;
  static Vector all(float value) { return _mm512_set1_ps(value); }
  static Mask first(std::size_t n) {
    return n >= n_lanes ? Mask(0xFFFF) : static_cast<Mask>((1U << n) - 1U);
  }
  static Vector load(Mask mask, const float* from) { return _mm512_maskz_loadu_ps(mask, from); }
  static Vector load_strided(std::size_t n, const float* from) {
    // Lanes 0, 2, 4, ... of 2 n - 1 values; nothing after the last one is accessed.
    const std::size_t n_values = 2 * n - 1;
    const Vector low = load(first(n_values), from);
    const Vector high = load(first(n_values > 16 ? n_values - 16 : 0), from + 16);
    const __m512i even =
        _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    return _mm512_permutex2var_ps(low, even, high);
  }
  static Vector add(Vector x, Vector y) { return _mm512_add_ps(x, y); }
  static Vector subtract(Vector x, Vector y) { return _mm512_sub_ps(x, y); }
  static Vector multiply(Vector x, Vector y) { return _mm512_mul_ps(x, y); }
  /// Round t to codes, store them as 16 int32, and return them as floats.
  static Vector quantise(Vector t, Mask mask, std::int32_t* codes) {
    const Vector u = _mm512_add_ps(t, _mm512_set1_ps(kRoundF32));
    const __m512i q =
        _mm512_sub_epi32(_mm512_castps_si512(u), _mm512_castps_si512(_mm512_set1_ps(kRoundF32)));
    _mm512_mask_storeu_epi32(codes, mask, q);
    return _mm512_cvtepi32_ps(q);
  }
  static Vector codes_as_values(Mask mask, const std::int32_t* codes) {
    return _mm512_cvtepi32_ps(_mm512_maskz_loadu_epi32(mask, codes));
  }
  static Mask within(Mask mask, Vector error, Vector bound) {
    return _mm512_mask_cmp_ps_mask(mask, _mm512_abs_ps(error), bound, _CMP_LT_OQ);
  }
  static void store(float* to, Mask mask, Vector value) { _mm512_mask_storeu_ps(to, mask, value); }
  static void store_interleaved(float* to, std::size_t n, Vector even, Vector odd) {
    const __m512i low = _mm512_setr_epi32(0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    const __m512i high =
        _mm512_setr_epi32(8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
    store(to, first(2 * n), _mm512_permutex2var_ps(even, low, odd));
    if (n > 8) store(to + 16, first(2 * n - 16), _mm512_permutex2var_ps(even, high, odd));
  }
};

template <>
struct Wide<double> {
  using Vector = __m512d;
  using Mask = __mmask8;
  static constexpr std::size_t n_lanes = 8;
  static Vector all(double value) { return _mm512_set1_pd(value); }
  static Mask first(std::size_t n) {
    return n >= n_lanes ? Mask(0xFF) : static_cast<Mask>((1U << n) - 1U);
  }
  static Vector load(Mask mask, const double* from) { return _mm512_maskz_loadu_pd(mask, from); }
  static Vector load_strided(std::size_t n, const double* from) {
    const std::size_t n_values = 2 * n - 1;
    const Vector low = load(first(n_values), from);
    const Vector high = load(first(n_values > 8 ? n_values - 8 : 0), from + 8);
    const __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    return _mm512_permutex2var_pd(low, even, high);
  }
  static Vector add(Vector x, Vector y) { return _mm512_add_pd(x, y); }
  static Vector subtract(Vector x, Vector y) { return _mm512_sub_pd(x, y); }
  static Vector multiply(Vector x, Vector y) { return _mm512_mul_pd(x, y); }
  static Vector quantise(Vector t, Mask mask, std::int32_t* codes) {
    const Vector u = _mm512_add_pd(t, _mm512_set1_pd(kRoundF64));
    const __m256i q = _mm512_cvtepi64_epi32(_mm512_castpd_si512(u));
    _mm256_mask_storeu_epi32(codes, mask, q);
    return _mm512_cvtepi32_pd(q);
  }
  static Vector codes_as_values(Mask mask, const std::int32_t* codes) {
    return _mm512_cvtepi32_pd(_mm256_maskz_loadu_epi32(mask, codes));
  }
  static Mask within(Mask mask, Vector error, Vector bound) {
    return _mm512_mask_cmp_pd_mask(mask, _mm512_abs_pd(error), bound, _CMP_LT_OQ);
  }
  static void store(double* to, Mask mask, Vector value) { _mm512_mask_storeu_pd(to, mask, value); }
  static void store_interleaved(double* to, std::size_t n, Vector even, Vector odd) {
    const __m512i low = _mm512_setr_epi64(0, 8, 1, 9, 2, 10, 3, 11);
    const __m512i high = _mm512_setr_epi64(4, 12, 5, 13, 6, 14, 7, 15);
    store(to, first(2 * n), _mm512_permutex2var_pd(even, low, odd));
    if (n > 4) store(to + 8, first(2 * n - 8), _mm512_permutex2var_pd(even, high, odd));
  }
};

// A table of 256 bytes in four registers: 64 look-ups take three instructions.

/// Table of 256 bytes in registers, looked up by 64 byte indices at a time.
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

#endif

inline constexpr std::size_t kPart = 256;  ///< Values per pass over temporary arrays in the cache.

/// Quantise n <= kPart predicted values, of which some may fail. Computes codes (0 if a value
/// fails), the values that the decoder will have, and failed[i] = 1 or 0.
template <class T, std::size_t kStride>
inline void quantise_carefully(const T* x, const T* __restrict p, std::size_t n,
                               const Lattice<T>& lattice, const T* fill,
                               std::int32_t* __restrict codes, T* __restrict reconstructed,
                               std::uint8_t* __restrict failed) {
  const bool has_fill = fill != nullptr;
  const T fill_value = has_fill ? *fill : T(0);
  const std::int32_t fill_counts = has_fill ? 1 : 0;
  const T inverse_step = lattice.inverse_step;
  const T step = lattice.step;
  const T bound = lattice.bound;
  std::int32_t good[kPart];
  for (std::size_t i = 0; i < n; ++i) {
    const T value = x[i * kStride];
    const std::int32_t q = Rounding<T>::quantise((value - p[i]) * inverse_step);
    const T error = value - (p[i] + static_cast<T>(q) * step);
    good[i] = ((error < bound) & (error > -bound)) & ((fill_counts & (value == fill_value)) ^ 1);
    codes[i] = q & -good[i];
  }
  // A failing value becomes its prediction: p + 0 * step, which is p except for the sign of a zero.
  for (std::size_t i = 0; i < n; ++i) {
    reconstructed[i] = p[i] + static_cast<T>(codes[i]) * step;
  }
  for (std::size_t i = 0; i < n; ++i) failed[i] = static_cast<std::uint8_t>(good[i] ^ 1);
}

}  // namespace
}  // namespace tailrace::trz::TRZ_ISA
