// Bit planes: the loops of refined_kernels.hpp, compiled once per instruction set.
//
// Plain loops, which the compiler vectorises.

#include "trz/kernels/refined_kernels.hpp"

namespace tailrace::trz::TRZ_ISA {
namespace {

template <class T>
struct Float;
template <>
struct Float<float> {
  using Bits = std::uint32_t;
  using Flag = std::int32_t;
  static constexpr Bits kExponent = 0x7F800000U;
};
template <>
struct Float<double> {
  using Bits = std::uint64_t;
  using Flag = std::int64_t;
  static constexpr Bits kExponent = 0x7FF0000000000000U;
};

template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  __builtin_memcpy(&to, &from, sizeof to);
  return to;
}

/// Transpose 8 x 8 bits: bit i of byte b becomes bit b of byte i (Warren, Hacker's Delight, 7-3).
std::uint64_t transposed(std::uint64_t x) {
  std::uint64_t t = (x ^ (x >> 7)) & 0x00AA00AA00AA00AA;
  x ^= t ^ (t << 7);
  t = (x ^ (x >> 14)) & 0x0000CCCC0000CCCC;
  x ^= t ^ (t << 14);
  t = (x ^ (x >> 28)) & 0x00000000F0F0F0F0;
  return x ^ t ^ (t << 28);
}

template <class T>
T refined(T coarser, std::int32_t known, int n_left, std::int32_t n_cells, T half_cell) {
  return coarser + static_cast<T>(((2 * known + 1) << n_left) - n_cells) * half_cell;
}

/// Shift of every second value, as a fraction of a cell's width. It is so small that no error
/// exceeds the bound.
constexpr float kAside = 0x1p-12F;

template <class T>
bool find_in(const T* x, const T* coarser, std::size_t n, const CellPlan<T>& plan,
             std::uint8_t* cells) {
  using Flag = typename Float<T>::Flag;
  const std::int32_t n_cells = 1 << plan.n_planes;
  const T middle = static_cast<T>(1 << (plan.n_planes - 1));
  const T greatest = static_cast<T>(n_cells - 1);
  std::int32_t found[kCellBlock];
  Flag bad[kCellBlock];
  for (std::size_t i = 0; i < n; ++i) {
    // NaN gets the first cell, so that the cast always fits. If the coarser value equals the value,
    // the cells on both sides are equally near; the shift selects them alternately.
    T place = (x[i] - coarser[i]) * plan.inverse_cell + (middle - (i % 2 == 1 ? T(kAside) : T(0)));
    place = place > T(0) ? place : T(0);
    place = place < greatest ? place : greatest;
    found[i] = static_cast<std::int32_t>(place);
    bad[i] = x[i] == plan.fill ? 1 : 0;
  }
  for (int n_left = plan.n_planes; n_left >= 0; --n_left) {
    const T limit = plan.bound * static_cast<T>(1 << n_left);
    for (std::size_t i = 0; i < n; ++i) {
      const T error =
          x[i] - refined(coarser[i], found[i] >> n_left, n_left, n_cells, plan.half_cell);
      bad[i] |= ((error < limit) & (error > -limit)) ? 0 : 1;
    }
  }
  Flag any = 0;
  for (std::size_t i = 0; i < n; ++i) {
    cells[i] = static_cast<std::uint8_t>(found[i]);
    any |= bad[i];
  }
  return any == 0;
}

template <class T>
bool find_cells(const T* values, const T* coarser, std::size_t n, const CellPlan<T>& plan,
                std::uint8_t* cells) {
  return n == kCellBlock ? find_in(values, coarser, kCellBlock, plan, cells)
                         : find_in(values, coarser, n, plan, cells);
}

template <class T>
void refine_eight(T* values, std::uint64_t word, int n_left, std::int32_t n_cells, T half_cell) {
  using Bits = typename Float<T>::Bits;
  for (int i = 0; i < 8; ++i) {
    const auto known = static_cast<std::int32_t>(word >> (8 * i) & 0xFF);
    const Bits bits = bits_as<Bits>(values[i]);
    const Bits moved = bits_as<Bits>(refined(values[i], known, n_left, n_cells, half_cell));
    const bool finite = (bits & Float<T>::kExponent) != Float<T>::kExponent;
    values[i] = bits_as<T>(finite ? moved : bits);
  }
}

template <class T>
void refine(T* values, std::size_t n, int n_planes, int n_read, T half_cell,
            const std::uint8_t* planes) {
  const std::size_t n_plane_bytes = (n + 7) / 8;
  const std::int32_t n_cells = 1 << n_planes;
  const int n_left = n_planes - n_read;
  for (std::size_t at = 0; at < n_plane_bytes; ++at) {
    std::uint64_t word = 0;
    for (int plane = 0; plane < n_read; ++plane) {
      word = word << 8 | planes[static_cast<std::size_t>(plane) * n_plane_bytes + at];
    }
    word = transposed(word);
    T* const to = values + 8 * at;
    if (8 * at + 8 <= n) {
      refine_eight(to, word, n_left, n_cells, half_cell);
      continue;
    }
    T rest[8] = {};
    const std::size_t n_rest = n - 8 * at;
    for (std::size_t i = 0; i < n_rest; ++i) rest[i] = to[i];
    refine_eight(rest, word, n_left, n_cells, half_cell);
    for (std::size_t i = 0; i < n_rest; ++i) to[i] = rest[i];
  }
}

void pack(const std::uint8_t* cells, std::size_t n, int n_planes, std::uint8_t* planes) {
  const std::size_t n_plane_bytes = (n + 7) / 8;
  for (std::size_t at = 0; at < n_plane_bytes; ++at) {
    std::uint64_t word = 0;
    __builtin_memcpy(&word, cells + 8 * at, sizeof word);
    word = transposed(word);
    for (int plane = 0; plane < n_planes; ++plane) {
      planes[static_cast<std::size_t>(plane) * n_plane_bytes + at] =
          static_cast<std::uint8_t>(word >> (8 * (n_planes - 1 - plane)));
    }
  }
}

}  // namespace

extern const RefinedKernels refined_kernels_table;
const RefinedKernels refined_kernels_table = {{TRZ_ENCODES(find_cells<float>), refine<float>},
                                              {TRZ_ENCODES(find_cells<double>), refine<double>},
                                              TRZ_ENCODES(pack)};

}  // namespace tailrace::trz::TRZ_ISA
