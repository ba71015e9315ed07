// Interpolation rows: the loops of interpolation_kernels.hpp, compiled once per instruction set.
//
// Each loop is plain C++ that the compiler vectorises. For AVX-512 the same operations are written
// with intrinsics: its masks handle the ends of rows, and its permutations the stride of two, at no
// cost. Speed: see trz/DESIGN.md. The order of the floating-point operations is part of the format.

#include "trz/kernels/interpolation_kernels.hpp"
#include "trz/kernels/kernel_vectors.hpp"

namespace tailrace::trz::TRZ_ISA {
namespace {

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

// --- plain loops -------------------------------------------------------------------------------

/// Encode the values [begin, n) of a row; returns true if all are within the bound.
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

#if defined(__AVX512VBMI2__)

// --- AVX-512
// --------------------------------------------------------------------------------------

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

// --- careful, and the choice of a loop ---------------------------------------------------------

template <class T, bool kEdge>
void careful_row(const InterpolationRow<T>& row, const RowWeights<T>& weights,
                 const Lattice<T>& lattice, const T* fill, std::int32_t* codes,
                 std::uint8_t* failed) {
  T predicted[kPart];
  T reconstructed[kPart];
  const RowWeights<T> w = weights;
  for (std::size_t begin = 0; begin < row.n; begin += kPart) {
    const std::size_t n = row.n - begin < kPart ? row.n - begin : kPart;
    const T* a = row.a + begin;
    const T* b = row.b + begin;
    const T* c = row.c + begin;
    const T* d = row.d + begin;
    for (std::size_t i = 0; i < n; ++i) predicted[i] = predict<kEdge>(a[i], b[i], c[i], d[i], w);
    if (row.stride == 1) {
      quantise_carefully<T, 1>(row.x + begin, predicted, n, lattice, fill, codes + begin,
                               reconstructed, failed + begin);
    } else {
      quantise_carefully<T, 2>(row.x + 2 * begin, predicted, n, lattice, fill, codes + begin,
                               reconstructed, failed + begin);
    }
    if (row.where == Reconstruct::plain) {
      T* __restrict recon = row.recon + begin;
      for (std::size_t i = 0; i < n; ++i) recon[i] = reconstructed[i];
    } else if (row.where == Reconstruct::interleave) {
      T* __restrict recon = row.recon + 2 * begin;
      for (std::size_t i = 0; i < n; ++i) {
        recon[2 * i] = b[i];
        recon[2 * i + 1] = reconstructed[i];
      }
    }
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

template <class T>
void encode_careful(const InterpolationRow<T>& row, const RowWeights<T>& weights,
                    const Lattice<T>& lattice, const T* fill, std::int32_t* codes,
                    std::uint8_t* failed) {
  if (weights.edge) return careful_row<T, true>(row, weights, lattice, fill, codes, failed);
  careful_row<T, false>(row, weights, lattice, fill, codes, failed);
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
    {TRZ_ENCODES(encode<float>), TRZ_ENCODES(encode_careful<float>), decode<float>},
    {TRZ_ENCODES(encode<double>), TRZ_ENCODES(encode_careful<double>), decode<double>}};

}  // namespace tailrace::trz::TRZ_ISA
