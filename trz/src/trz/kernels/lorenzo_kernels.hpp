// Kernels of the Lorenzo predictor: values to lattice integers, differences of them, and back.
//
// The driver (lorenzo.cpp) works on pieces: up to a few thousand values in row-major order, whole
// rows or parts of rows. quantise() and restore() know nothing of rows; difference() and sum()
// keep what they need of the neighbours in place: the row above is q[i - row], and `plane` holds
// the y-differences of the plane before, `volume` the z-differences of the volume before.
// Integers are modular: every sum is taken as uint32 or uint64.
// This header may be included by kernel files.

#pragma once

#include <cstddef>
#include <cstdint>

#include "trz/kernels/isa.hpp"
#include "trz/predict/lattice.hpp"

namespace tailrace::trz {

inline constexpr std::size_t kPieceValues = 2048;  ///< Of one piece, at most.

template <class T>
struct LatticeKernels {
  /// q[i] of n values. `fill` (null for none): values equal to it fail. Returns false if any value
  /// fails; q is then of no use.
  bool (*quantise)(const T* values, std::size_t n, const Lattice<T>& lattice, const T* fill,
                   std::int32_t* q);
  /// The same with bit i % 64 of failed[i / 64] set where value i fails; q[i] is undefined there.
  /// Bits at and above n are 0.
  void (*quantise_careful)(const T* values, std::size_t n, const Lattice<T>& lattice, const T* fill,
                           std::int32_t* q, std::uint64_t* failed);
  /// values[i] = offset + q[i] * step.
  void (*restore)(const std::int32_t* q, std::size_t n, const Lattice<T>& lattice, T* values);
};

/// Where a piece lies. difference() reads q, sum() writes it. Word: int32_t, int64_t.
template <class Word>
struct PieceOf {
  int order = 1;           ///< 0..4.
  Word* q = nullptr;       ///< Order >= 2: q[-row] .. q[-1] are there too.
  Word* plane = nullptr;   ///< Order >= 3, of this piece; read, then replaced.
  Word* volume = nullptr;  ///< Order 4, likewise.
  std::size_t row = 0;     ///< Values in a whole row.
  std::size_t at = 0;      ///< Position of the first value in its row.
  std::size_t n = 0;
  Word carry = 0;  ///< What at > 0 needs to know of the value before; updated.
};

using LorenzoPiece = PieceOf<std::int32_t>;
using WidePiece = PieceOf<std::int64_t>;

struct LorenzoKernels {
  LatticeKernels<float> f32;
  LatticeKernels<double> f64;
  void (*difference)(LorenzoPiece& piece, std::int32_t* codes);
  void (*sum)(LorenzoPiece& piece, const std::int32_t* codes);
  /// 64-bit codes as two of 32: code = high * 2^32 + low, low signed.
  void (*difference_wide)(WidePiece& piece, std::int32_t* low, std::int32_t* high);
  void (*sum_wide)(WidePiece& piece, const std::int32_t* low, const std::int32_t* high);
};

TRZ_DECLARE_KERNELS(LorenzoKernels, lorenzo_kernels)

}  // namespace tailrace::trz
