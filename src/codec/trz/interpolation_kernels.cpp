// Interpolation rows: the loops of interpolation_kernels.hpp, compiled once per instruction set.
//
// Each loop is plain C++ that the compiler vectorises; AVX-512 has the same operations written out,
// because its masks handle the ends of rows and its permutations the stride of two at no cost.
// Speed: see docs/trz.md. The order of the floating-point operations is part of the format.

#include "codec/trz/interpolation_kernels.hpp"

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

template <bool kEdge, class T>
inline T predict(T a, T b, T c, T d, const RowWeights<T>& w) {
  if constexpr (kEdge) {
    return (a * w.four[0] + d * w.four[3]) + (b * w.four[1] + c * w.four[2]);
  } else {
    return (b + c) * w.near + (a + d) * w.far;
  }
}

template <Reconstruct kWhere, class T>
inline void store(T* __restrict recon, std::size_t i, T b, T r) {
  if constexpr (kWhere == Reconstruct::plain) recon[i] = r;
  if constexpr (kWhere == Reconstruct::interleave) {
    recon[2 * i] = b;
    recon[2 * i + 1] = r;
  }
}

// --- plain loops
// ----------------------------------------------------------------------------------

/// Values [begin, n) of a row; returns whether all are within the bound.
template <class T, bool kEdge, std::size_t kStride, Reconstruct kWhere>
inline bool encode_loop(const InterpolationRow<T>& row, const RowWeights<T>& weights,
                        const Lattice<T>& lattice, std::int32_t* __restrict codes,
                        std::size_t begin) {
  const T* x = row.x;
  const T* a = row.a;
  const T* b = row.b;
  const T* c = row.c;
  const T* d = row.d;
  T* __restrict recon = row.recon;
  const RowWeights<T> w = weights;
  const T inverse_step = lattice.inverse_step;
  const T step = lattice.step;
  const T bound = lattice.bound;
  std::int32_t bad = 0;
  for (std::size_t i = begin; i < row.n; ++i) {
    const T value = x[i * kStride];
    const T p = predict<kEdge>(a[i], b[i], c[i], d[i], w);
    const std::int32_t q = Rounding<T>::quantise((value - p) * inverse_step);
    const T r = p + static_cast<T>(q) * step;
    const T error = value - r;
    const std::int32_t good = (error < bound) & (error > -bound);
    bad |= good ^ 1;
    codes[i] = q;
    store<kWhere>(recon, i, b[i], r);
  }
  return bad == 0;
}

template <class T>
inline bool contains(const T* x, std::size_t stride, std::size_t n, T wanted) {
  std::int32_t found = 0;
  for (std::size_t i = 0; i < n; ++i) found |= x[i * stride] == wanted;
  return found != 0;
}

#if defined(__AVX512VBMI2__)

// --- AVX-512
// --------------------------------------------------------------------------------------

/// The vector operations of one element type, so that one loop serves both.
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
    // Lanes 0, 2, 4, ... of 2 n - 1 values; nothing behind the last one is touched.
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
  /// Codes of t as 16 int32, and the same as floats.
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

template <class T, bool kEdge>
struct WideWeights {
  using W = Wide<T>;
  typename W::Vector w[4];
  explicit WideWeights(const RowWeights<T>& weights) {
    for (int k = 0; k < 4; ++k) w[k] = W::all(weights.four[k]);
    if constexpr (!kEdge) {
      w[0] = W::all(weights.near);
      w[1] = W::all(weights.far);
    }
  }
  typename W::Vector predict(typename W::Vector a, typename W::Vector b, typename W::Vector c,
                             typename W::Vector d) const {
    if constexpr (kEdge) {
      return W::add(W::add(W::multiply(a, w[0]), W::multiply(d, w[3])),
                    W::add(W::multiply(b, w[1]), W::multiply(c, w[2])));
    } else {
      return W::add(W::multiply(W::add(b, c), w[0]), W::multiply(W::add(a, d), w[1]));
    }
  }
};

template <Reconstruct kWhere, class T>
inline void store_wide(T* recon, std::size_t i, std::size_t n, typename Wide<T>::Mask mask,
                       typename Wide<T>::Vector b, typename Wide<T>::Vector r) {
  using W = Wide<T>;
  if constexpr (kWhere == Reconstruct::plain) W::store(recon + i, mask, r);
  if constexpr (kWhere == Reconstruct::interleave) {
    W::store_interleaved(recon + 2 * i, n, b, r);
  }
}

template <class T, bool kEdge, std::size_t kStride, Reconstruct kWhere>
inline bool encode_row(const InterpolationRow<T>& row, const RowWeights<T>& weights,
                       const Lattice<T>& lattice, std::int32_t* codes) {
  using W = Wide<T>;
  const InterpolationRow<T> s = row;
  const WideWeights<T, kEdge> w(weights);
  const auto inverse_step = W::all(lattice.inverse_step);
  const auto step = W::all(lattice.step);
  const auto bound = W::all(lattice.bound);
  std::uint32_t bad = 0;
  const auto one = [&](std::size_t i, std::size_t n, typename W::Mask mask) {
    const auto value = kStride == 1 ? W::load(mask, s.x + i) : W::load_strided(n, s.x + 2 * i);
    const auto b = W::load(mask, s.b + i);
    const auto p =
        w.predict(W::load(mask, s.a + i), b, W::load(mask, s.c + i), W::load(mask, s.d + i));
    const auto q = W::quantise(W::multiply(W::subtract(value, p), inverse_step), mask, codes + i);
    const auto r = W::add(p, W::multiply(q, step));
    bad |= static_cast<std::uint32_t>(W::within(mask, W::subtract(value, r), bound) ^ mask);
    store_wide<kWhere>(s.recon, i, n, mask, b, r);
  };
  std::size_t i = 0;
  for (; i + W::n_lanes < s.n; i += W::n_lanes) one(i, W::n_lanes, W::first(W::n_lanes));
  if (i < s.n) one(i, s.n - i, W::first(s.n - i));
  return bad == 0;
}

template <class T, bool kEdge, Reconstruct kWhere>
inline void decode_row(const InterpolationRow<T>& row, const RowWeights<T>& weights, T step_value,
                       const std::int32_t* codes) {
  using W = Wide<T>;
  const InterpolationRow<T> s = row;
  const WideWeights<T, kEdge> w(weights);
  const auto step = W::all(step_value);
  const auto one = [&](std::size_t i, std::size_t n, typename W::Mask mask) {
    const auto b = W::load(mask, s.b + i);
    const auto p =
        w.predict(W::load(mask, s.a + i), b, W::load(mask, s.c + i), W::load(mask, s.d + i));
    const auto r = W::add(p, W::multiply(W::codes_as_values(mask, codes + i), step));
    store_wide<kWhere>(s.recon, i, n, mask, b, r);
  };
  std::size_t i = 0;
  for (; i + W::n_lanes < s.n; i += W::n_lanes) one(i, W::n_lanes, W::first(W::n_lanes));
  if (i < s.n) one(i, s.n - i, W::first(s.n - i));
}

#else

template <class T, bool kEdge, std::size_t kStride, Reconstruct kWhere>
inline bool encode_row(const InterpolationRow<T>& row, const RowWeights<T>& weights,
                       const Lattice<T>& lattice, std::int32_t* codes) {
  return encode_loop<T, kEdge, kStride, kWhere>(row, weights, lattice, codes, 0);
}

template <class T, bool kEdge, Reconstruct kWhere>
inline void decode_row(const InterpolationRow<T>& row, const RowWeights<T>& weights, T step,
                       const std::int32_t* __restrict codes) {
  const T* a = row.a;
  const T* b = row.b;
  const T* c = row.c;
  const T* d = row.d;
  T* __restrict recon = row.recon;
  const RowWeights<T> w = weights;
  for (std::size_t i = 0; i < row.n; ++i) {
    const T p = predict<kEdge>(a[i], b[i], c[i], d[i], w);
    store<kWhere>(recon, i, b[i], p + static_cast<T>(codes[i]) * step);
  }
}

#endif

// --- careful, and the choice of a loop
// ------------------------------------------------------------

template <class T, bool kEdge, Reconstruct kWhere>
inline void careful_row(const InterpolationRow<T>& row, const RowWeights<T>& weights,
                        const Lattice<T>& lattice, const T* fill, std::int32_t* __restrict codes,
                        std::uint8_t* __restrict failed) {
  const T* a = row.a;
  const T* b = row.b;
  const T* c = row.c;
  const T* d = row.d;
  T* __restrict recon = row.recon;
  const RowWeights<T> w = weights;
  const std::size_t stride = row.stride;
  const bool has_fill = fill != nullptr;
  const T fill_value = has_fill ? *fill : T(0);
  for (std::size_t i = 0; i < row.n; ++i) {
    const T value = row.x[i * stride];
    const T p = predict<kEdge>(a[i], b[i], c[i], d[i], w);
    const std::int32_t q = Rounding<T>::quantise((value - p) * lattice.inverse_step);
    const T r = p + static_cast<T>(q) * lattice.step;
    const T error = value - r;
    const bool good =
        ((error < lattice.bound) & (error > -lattice.bound)) & !(has_fill & (value == fill_value));
    codes[i] = good ? q : 0;
    failed[i] = good ? 0 : 1;
    // As the decoder will have it: p + 0 * step is p, but for the sign of a zero.
    store<kWhere>(recon, i, b[i], good ? r : p + T(0) * lattice.step);
  }
}

template <class T, bool kEdge>
bool encode_any(const InterpolationRow<T>& row, const RowWeights<T>& weights,
                const Lattice<T>& lattice, std::int32_t* codes) {
  using enum Reconstruct;
  if (row.stride == 1) {
    if (row.where == discard) return encode_row<T, kEdge, 1, discard>(row, weights, lattice, codes);
    return encode_row<T, kEdge, 1, plain>(row, weights, lattice, codes);
  }
  switch (row.where) {
    case discard: return encode_row<T, kEdge, 2, discard>(row, weights, lattice, codes);
    case plain: return encode_row<T, kEdge, 2, plain>(row, weights, lattice, codes);
    case interleave: break;
  }
  return encode_row<T, kEdge, 2, interleave>(row, weights, lattice, codes);
}

template <class T>
bool encode(const InterpolationRow<T>& row, const RowWeights<T>& weights, const Lattice<T>& lattice,
            const T* fill, std::int32_t* codes) {
  if (fill != nullptr && contains(row.x, row.stride, row.n, *fill)) return false;
  return weights.edge ? encode_any<T, true>(row, weights, lattice, codes)
                      : encode_any<T, false>(row, weights, lattice, codes);
}

template <class T, bool kEdge>
void careful_any(const InterpolationRow<T>& row, const RowWeights<T>& weights,
                 const Lattice<T>& lattice, const T* fill, std::int32_t* codes,
                 std::uint8_t* failed) {
  using enum Reconstruct;
  switch (row.where) {
    case discard: return careful_row<T, kEdge, discard>(row, weights, lattice, fill, codes, failed);
    case plain: return careful_row<T, kEdge, plain>(row, weights, lattice, fill, codes, failed);
    case interleave: break;
  }
  careful_row<T, kEdge, interleave>(row, weights, lattice, fill, codes, failed);
}

template <class T>
void encode_careful(const InterpolationRow<T>& row, const RowWeights<T>& weights,
                    const Lattice<T>& lattice, const T* fill, std::int32_t* codes,
                    std::uint8_t* failed) {
  if (weights.edge) return careful_any<T, true>(row, weights, lattice, fill, codes, failed);
  careful_any<T, false>(row, weights, lattice, fill, codes, failed);
}

template <class T, bool kEdge>
void decode_any(const InterpolationRow<T>& row, const RowWeights<T>& weights, T step,
                const std::int32_t* codes) {
  if (row.where == Reconstruct::interleave) {
    return decode_row<T, kEdge, Reconstruct::interleave>(row, weights, step, codes);
  }
  decode_row<T, kEdge, Reconstruct::plain>(row, weights, step, codes);
}

template <class T>
void decode(const InterpolationRow<T>& row, const RowWeights<T>& weights, T step,
            const std::int32_t* codes) {
  if (weights.edge) return decode_any<T, true>(row, weights, step, codes);
  decode_any<T, false>(row, weights, step, codes);
}

}  // namespace

extern const InterpolationKernels interpolation_kernels_table;
const InterpolationKernels interpolation_kernels_table = {
    {encode<float>, encode_careful<float>, decode<float>},
    {encode<double>, encode_careful<double>, decode<double>}};

}  // namespace tailrace::trz::TRZ_ISA
