// Joint interpolation rows: one to three axes predict rows together (interpolation_kernels.hpp).
//
// prediction = ((p0 + p1) + p2), where pk = (b + c) * near + (a + d) * far. On edges,
// pk = (a * w0 + d * w3) + (b * w1 + c * w2). This order of operations is part of the format.

#include "trz/kernels/interpolation_kernels.hpp"
#include "trz/kernels/kernel_vectors.hpp"

namespace tailrace::trz::TRZ_ISA {
namespace {

/// Row r of joint rows, as joint rows of one row.
template <class T>
inline JointRows<T> row_of(const JointRows<T>& rows, std::size_t r) {
  JointRows<T> row = rows;
  row.n_rows = 1;
  if (row.x != nullptr) row.x += r * rows.x_pitch;
  for (int k = 0; k < rows.n_axes; ++k) {
    const std::size_t shift = r * rows.axes[k].pitch;
    row.axes[k].a += shift;
    row.axes[k].b += shift;
    row.axes[k].c += shift;
    row.axes[k].d += shift;
  }
  if (row.recon != nullptr) row.recon += r * rows.recon_pitch;
  if (row.full != nullptr) row.full += r * rows.full_pitch;
  return row;
}

template <bool kEdge, class T>
inline T predict_axis(const typename JointRows<T>::Axis& axis, std::size_t i) {
  const RowWeights<T>& w = axis.weights;
  if constexpr (kEdge) {
    return (axis.a[i] * w.four[0] + axis.d[i] * w.four[3]) +
           (axis.b[i] * w.four[1] + axis.c[i] * w.four[2]);
  } else {
    return (axis.b[i] + axis.c[i]) * w.near + (axis.a[i] + axis.d[i]) * w.far;
  }
}

template <int kAxes, bool kEdge, class T>
inline T predict(const JointRows<T>& row, std::size_t i) {
  T p = predict_axis<kEdge, T>(row.axes[0], i);
  if constexpr (kAxes > 1) p = p + predict_axis<kEdge, T>(row.axes[1], i);
  if constexpr (kAxes > 2) p = p + predict_axis<kEdge, T>(row.axes[2], i);
  return p;
}

template <class T, int kAxes, bool kEdge>
inline void predict_part(const JointRows<T>& row, std::size_t begin, std::size_t n,
                         T* __restrict p) {
  for (std::size_t i = 0; i < n; ++i) p[i] = predict<kAxes, kEdge>(row, begin + i);
}

/// Store the reconstructed values [begin, begin + n) of a row in recon and full.
template <class T>
inline void put_part(const JointRows<T>& row, std::size_t begin, std::size_t n,
                     const T* __restrict values) {
  if (row.recon != nullptr) {
    T* __restrict recon = row.recon + begin;
    for (std::size_t i = 0; i < n; ++i) recon[i] = values[i];
  }
  if (row.full != nullptr) {
    const T* __restrict even = row.axes[0].b + begin;
    T* __restrict full = row.full + 2 * begin;
    for (std::size_t i = 0; i < n; ++i) {
      full[2 * i] = even[i];
      full[2 * i + 1] = values[i];
    }
  }
}

#if defined(__AVX512VBMI2__)

/// Prefetch two cache lines `ahead` elements from here. Any address is safe.
template <class T>
inline void prefetch(const T* here, std::ptrdiff_t ahead) {
  const auto address =
      reinterpret_cast<std::uintptr_t>(here) + static_cast<std::uintptr_t>(ahead) * sizeof(T);
  // Compute the address as an integer, since it may lie outside the array.
  // NOLINTBEGIN(performance-no-int-to-ptr)
  __builtin_prefetch(reinterpret_cast<const void*>(address));
  __builtin_prefetch(reinterpret_cast<const void*>(address + 64));
  // NOLINTEND(performance-no-int-to-ptr)
}

/// Neighbours and weights of one axis, as vectors.
template <class T, bool kEdge>
struct WideAxis {
  using W = Wide<T>;
  const T *a, *b, *c, *d;
  std::size_t pitch;
  typename W::Vector w[4];
  explicit WideAxis(const typename JointRows<T>::Axis& axis)
      : a(axis.a), b(axis.b), c(axis.c), d(axis.d), pitch(axis.pitch) {
    if constexpr (kEdge) {
      for (int k = 0; k < 4; ++k) w[k] = W::all(axis.weights.four[k]);
    } else {
      w[0] = W::all(axis.weights.near);
      w[1] = W::all(axis.weights.far);
    }
  }
  typename W::Vector predict(typename W::Mask mask, std::size_t i) const {
    const auto va = W::load(mask, a + i);
    const auto vb = W::load(mask, b + i);
    const auto vc = W::load(mask, c + i);
    const auto vd = W::load(mask, d + i);
    if constexpr (kEdge) {
      return W::add(W::add(W::multiply(va, w[0]), W::multiply(vd, w[3])),
                    W::add(W::multiply(vb, w[1]), W::multiply(vc, w[2])));
    } else {
      return W::add(W::multiply(W::add(vb, vc), w[0]), W::multiply(W::add(va, vd), w[1]));
    }
  }
  void next_row() {
    a += pitch;
    b += pitch;
    c += pitch;
    d += pitch;
  }
};

/// Destination of the rows' reconstructed values.
template <class T>
struct WideOutput {
  using W = Wide<T>;
  T* recon;
  T* full;
  std::size_t recon_pitch, full_pitch;
  explicit WideOutput(const JointRows<T>& rows)
      : recon(rows.recon),
        full(rows.full),
        recon_pitch(rows.recon_pitch),
        full_pitch(rows.full_pitch) {}
  void put(const T* even, std::size_t i, std::size_t n, typename W::Mask mask,
           typename W::Vector r) const {
    if (recon != nullptr) W::store(recon + i, mask, r);
    if (full != nullptr) W::store_interleaved(full + 2 * i, n, W::load(mask, even + i), r);
  }
  void next_row() {
    if (recon != nullptr) recon += recon_pitch;
    if (full != nullptr) full += full_pitch;
  }
};

template <class T, int kAxes, bool kEdge>
struct WideAxes {
  using W = Wide<T>;
  WideAxis<T, kEdge> first, second, third;
  explicit WideAxes(const JointRows<T>& rows)
      : first(rows.axes[0]), second(rows.axes[kAxes > 1 ? 1 : 0]), third(rows.axes[kAxes - 1]) {}
  typename W::Vector predict(typename W::Mask mask, std::size_t i) const {
    auto p = first.predict(mask, i);
    if constexpr (kAxes > 1) p = W::add(p, second.predict(mask, i));
    if constexpr (kAxes > 2) p = W::add(p, third.predict(mask, i));
    return p;
  }
  void next_row() {
    first.next_row();
    if constexpr (kAxes > 1) second.next_row();
    if constexpr (kAxes > 2) third.next_row();
  }
};

template <class T, int kAxes, bool kEdge>
bool encode_axes(const JointRows<T>& rows, const Lattice<T>& lattice, std::int32_t* codes) {
  using W = Wide<T>;
  WideAxes<T, kAxes, kEdge> axes(rows);
  WideOutput<T> output(rows);
  const auto inverse_step = W::all(lattice.inverse_step);
  const auto step = W::all(lattice.step);
  const auto bound = W::all(lattice.bound);
  const T* x = rows.x;
  const std::size_t n_row = rows.n;
  std::uint32_t bad = 0;
  for (std::size_t r = 0; r < rows.n_rows; ++r) {
    const auto some = [&](std::size_t i, std::size_t n, typename W::Mask mask) {
      const auto value = W::load_strided(n, x + 2 * i);
      prefetch(x + 2 * i, rows.ahead);
      const auto p = axes.predict(mask, i);
      const auto q = W::quantise(W::multiply(W::subtract(value, p), inverse_step), mask, codes + i);
      const auto reconstructed = W::add(p, W::multiply(q, step));
      bad |= static_cast<std::uint32_t>(W::within(mask, W::subtract(value, reconstructed), bound) ^
                                        mask);
      output.put(axes.first.b, i, n, mask, reconstructed);
    };
    std::size_t i = 0;
    for (; i + W::n_lanes < n_row; i += W::n_lanes) some(i, W::n_lanes, W::first(W::n_lanes));
    if (i < n_row) some(i, n_row - i, W::first(n_row - i));
    x += rows.x_pitch;
    codes += n_row;
    axes.next_row();
    output.next_row();
  }
  return bad == 0;
}

template <class T, int kAxes, bool kEdge>
void decode_axes(const JointRows<T>& rows, T step_value, const std::int32_t* codes) {
  using W = Wide<T>;
  WideAxes<T, kAxes, kEdge> axes(rows);
  WideOutput<T> output(rows);
  const auto step = W::all(step_value);
  const std::size_t n_row = rows.n;
  for (std::size_t r = 0; r < rows.n_rows; ++r) {
    const auto some = [&](std::size_t i, std::size_t n, typename W::Mask mask) {
      const auto p = axes.predict(mask, i);
      if (output.full != nullptr) prefetch(output.full + 2 * i, rows.ahead);
      output.put(axes.first.b, i, n, mask,
                 W::add(p, W::multiply(W::codes_as_values(mask, codes + i), step)));
    };
    std::size_t i = 0;
    for (; i + W::n_lanes < n_row; i += W::n_lanes) some(i, W::n_lanes, W::first(W::n_lanes));
    if (i < n_row) some(i, n_row - i, W::first(n_row - i));
    codes += n_row;
    axes.next_row();
    output.next_row();
  }
}

#else

template <class T, int kAxes, bool kEdge>
bool encode_one(const JointRows<T>& row, const Lattice<T>& lattice, std::int32_t* codes) {
  std::int32_t bad = 0;
  T predicted[kPart];
  T reconstructed[kPart];
  const T inverse_step = lattice.inverse_step;
  const T step = lattice.step;
  const T bound = lattice.bound;
  for (std::size_t begin = 0; begin < row.n; begin += kPart) {
    const std::size_t n = row.n - begin < kPart ? row.n - begin : kPart;
    predict_part<T, kAxes, kEdge>(row, begin, n, predicted);
    const T* x = row.x + 2 * begin;
    std::int32_t* __restrict to = codes + begin;
    for (std::size_t i = 0; i < n; ++i) {
      const std::int32_t q = Rounding<T>::quantise((x[2 * i] - predicted[i]) * inverse_step);
      const T r = predicted[i] + static_cast<T>(q) * step;
      const T error = x[2 * i] - r;
      bad |= ((error < bound) & (error > -bound)) ^ 1;
      to[i] = q;
      reconstructed[i] = r;
    }
    put_part(row, begin, n, reconstructed);
  }
  return bad == 0;
}

template <class T, int kAxes, bool kEdge>
void decode_one(const JointRows<T>& row, T step, const std::int32_t* codes) {
  T predicted[kPart];
  T reconstructed[kPart];
  for (std::size_t begin = 0; begin < row.n; begin += kPart) {
    const std::size_t n = row.n - begin < kPart ? row.n - begin : kPart;
    predict_part<T, kAxes, kEdge>(row, begin, n, predicted);
    const std::int32_t* from = codes + begin;
    for (std::size_t i = 0; i < n; ++i) {
      reconstructed[i] = predicted[i] + static_cast<T>(from[i]) * step;
    }
    put_part(row, begin, n, reconstructed);
  }
}

template <class T, int kAxes, bool kEdge>
bool encode_axes(const JointRows<T>& rows, const Lattice<T>& lattice, std::int32_t* codes) {
  bool good = true;
  for (std::size_t r = 0; r < rows.n_rows; ++r) {
    good &= encode_one<T, kAxes, kEdge>(row_of(rows, r), lattice, codes + r * rows.n);
  }
  return good;
}

template <class T, int kAxes, bool kEdge>
void decode_axes(const JointRows<T>& rows, T step, const std::int32_t* codes) {
  for (std::size_t r = 0; r < rows.n_rows; ++r) {
    decode_one<T, kAxes, kEdge>(row_of(rows, r), step, codes + r * rows.n);
  }
}

#endif

template <class T, int kAxes, bool kEdge>
void careful_one(const JointRows<T>& row, const Lattice<T>& lattice, const T* fill,
                 std::int32_t* codes, std::uint8_t* failed) {
  T predicted[kPart];
  T reconstructed[kPart];
  for (std::size_t begin = 0; begin < row.n; begin += kPart) {
    const std::size_t n = row.n - begin < kPart ? row.n - begin : kPart;
    predict_part<T, kAxes, kEdge>(row, begin, n, predicted);
    quantise_carefully<T, 2>(row.x + 2 * begin, predicted, n, lattice, fill, codes + begin,
                             reconstructed, failed + begin);
    put_part(row, begin, n, reconstructed);
  }
}

/// Call f with the row's number of axes and `edge` as template arguments.
template <class T, class F>
inline auto with_form(const JointRows<T>& row, F f) {
  switch (row.n_axes) {
    case 1: return row.edge ? f.template operator()<1, true>() : f.template operator()<1, false>();
    case 2: return row.edge ? f.template operator()<2, true>() : f.template operator()<2, false>();
    default: return row.edge ? f.template operator()<3, true>() : f.template operator()<3, false>();
  }
}

template <class T>
bool encode(const JointRows<T>& rows, const Lattice<T>& lattice, const T* fill,
            std::int32_t* codes) {
  for (std::size_t r = 0; fill != nullptr && r < rows.n_rows; ++r) {
    if (contains(rows.x + r * rows.x_pitch, 2, rows.n, *fill)) return false;
  }
  return with_form(rows, [&]<int kAxes, bool kEdge>() {
    return encode_axes<T, kAxes, kEdge>(rows, lattice, codes);
  });
}

template <class T>
void encode_careful(const JointRows<T>& rows, const Lattice<T>& lattice, const T* fill,
                    std::int32_t* codes, std::uint8_t* failed) {
  with_form(rows, [&]<int kAxes, bool kEdge>() {
    for (std::size_t r = 0; r < rows.n_rows; ++r) {
      careful_one<T, kAxes, kEdge>(row_of(rows, r), lattice, fill, codes + r * rows.n,
                                   failed + r * rows.n);
    }
  });
}

template <class T>
void decode(const JointRows<T>& row, T step, const std::int32_t* codes) {
  with_form(row, [&]<int kAxes, bool kEdge>() { decode_axes<T, kAxes, kEdge>(row, step, codes); });
}

}  // namespace

extern const JointKernels joint_kernels_table;
const JointKernels joint_kernels_table = {
    {TRZ_ENCODES(encode<float>), TRZ_ENCODES(encode_careful<float>), decode<float>},
    {TRZ_ENCODES(encode<double>), TRZ_ENCODES(encode_careful<double>), decode<double>}};

}  // namespace tailrace::trz::TRZ_ISA
